/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the recordings that the golden tests read, into the directory argv[1]. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/golden/make_recordings.h"

const unsigned char lines_311[] = { 0x80 | 10 << 3 | 1, 0, 0, 0x80 | 12 << 3 | 3, 0, 0 };

uint64_t python_frame(uint32_t code, uint32_t offset, int from_c)
{
	return GPUCACHE_FRAME_PYTHON | (from_c ? GPUCACHE_FRAME_FROM_C : 0) | (uint64_t)code << 32 |
	       offset;
}

void add_device(struct recording_builder *b, double look_s)
{
	struct gpucache_device *device = &b->devices[0];

	device->seq = 2;
	strcpy(device->name, "NVIDIA H200");
	strcpy(device->uuid, "GPU-11111111-2222-3333-4444-555555555555");
	device->total_bytes = 140 * GIB;
	device->look_ns = builder_ns(look_s);
	device->free_bytes = 60 * GIB;
	device->ours_bytes = 72 * GIB;
	device->nvml = 1;
	device->process_bytes = 76 * GIB;
	device->others_bytes = 3 * GIB;
	device->driver_bytes = 600 * MIB;
}

/* A native program: three places allocate; two modules that are not on this machine. */
static void add_native_stacks(struct recording_builder *b)
{
	const uint64_t load[] = { 0x7f00001010, 0x401100, 0x401500 };
	const uint64_t step[] = { 0x7f00001010, 0x401200, 0x401500 };
	const uint64_t log[] = { 0x7f00001010, 0x402300, 0x401200, 0x401500 };

	builder_module(b, "/opt/train/bin/train", 0x400000, 0x500000, 0);
	builder_module(b, "/usr/local/cuda/lib64/libcudart.so.12", 0x7f00000000, 0x7f00100000,
		0x7f00000000);
	builder_stack(b, load, 3, NULL, 0);
	builder_stack(b, step, 3, NULL, 0);
	builder_stack(b, log, 4, NULL, 0);
}

void add_counters(struct recording_builder *b)
{
	struct gpucache_counters *counters = &b->counters[0];

	counters->context = 0xc0ffee;
	counters->n_malloc = 1234567;
	counters->n_free = 1234000;
	counters->n_hit = 1230000;
	counters->n_rescued = 3;
	counters->n_rescued_by[1] = 2;
	counters->n_rescued_by[2] = 1;
	counters->n_driver_malloc = 4567;
	counters->last_driver_malloc_ns = builder_ns(182);
	counters->one_stream_end = GPUCACHE_ONE_STREAM_END_STREAM;
	counters->peak_requested_bytes = 71 * GIB;
	counters->peak_live_bytes = 71 * GIB + 300 * MIB;
	counters->peak_reserved_bytes = 72 * GIB;
	b->peaks[1] = (struct gpucache_peak){ .seq = 4,
		.number = 7,
		.time_ns = builder_ns(611),
		.requested_bytes = 71 * GIB,
		.live_bytes = 71 * GIB + 300 * MIB,
		.reserved_bytes = 72 * GIB,
		.n_holders = 2,
		.n_sites = 5,
		.rest_bytes = GIB,
		.holders = { { 2, 11, 60 * GIB }, { 1, 4, 10 * GIB } } };
}

static void add_live(struct recording_builder *b)
{
	for (int i = 0; i < 10; i++)
		builder_live(b, 5 * GIB, 5 * GIB, 1, 2 + i);
	for (int i = 0; i < 12; i++)
		builder_live(b, GIB - 7 * MIB, GIB, 2, 700);
	for (int i = 0; i < 30; i++)
		builder_live(b, 700000, 1 * MIB, 3, 20 * i);
	b->counters[0].cached_bytes = 2 * GIB;
	b->counters[0].pending_bytes = 256 * MIB;
	b->counters[0].reserved_bytes += 2 * GIB + 256 * MIB;
	b->counters[0].direct_bytes = GIB;
	b->counters[0].kind_bytes[GPUCACHE_KIND_ASYNC] = 640 * MIB;
	b->counters[0].kind_bytes[GPUCACHE_KIND_POOL] = 384 * MIB;
	b->counters[0].kind_bytes[GPUCACHE_KIND_HOST] = 7 * MIB;
	b->blocks[b->n_blocks++] = (struct gpucache_block){ .seq = 2,
		.state = GPUCACHE_BLOCK_FREE,
		.kind = GPUCACHE_KIND_DEVICE,
		.size = 1400 * MIB };
}

static void add_text(struct recording_builder *b)
{
	builder_line(b, "cache on default");
	builder_line(b, "limit 0 default");
	builder_line(b, "recording_size 16MiB GPUCACHE_CONF");
	builder_line(b,
		"warning: GPUCACHE_CONF: unknown option \"stack_dept\" (did you mean \"stacks\"?), "
		"ignored");
}

static void add_oom(struct recording_builder *b, unsigned recovered)
{
	struct gpucache_oom *oom = &b->ooms[b->ooms[0].number ? 1 : 0];

	*oom = (struct gpucache_oom){ .seq = 2,
		.number = b->ooms[0].number + 1,
		.time_ns = builder_ns(720.5),
		.requested = 3328599654,
		.rounded = 3330 * MIB,
		.short_by = 1700 * MIB,
		.stack = 2,
		.thread = 4711,
		.recovered = recovered,
		.kind = GPUCACHE_KIND_DEVICE,
		.verdict = GPUCACHE_VERDICT_FRAGMENTED,
		.strength = GPUCACHE_STRENGTH_CERTAIN,
		.also = 1u << GPUCACHE_VERDICT_FRAGMENTED | 1u << GPUCACHE_VERDICT_NEIGHBOUR,
		.peak_requested = 125 * GIB,
		.n_rungs = 3,
		.n_holders = 3,
		.n_sites = 214,
		.rest_bytes = 5 * GIB,
		.n_neighbours = 2 };
	oom->balance = (struct gpucache_balance){ .requested = 120 * GIB,
		.rounding = 600 * MIB,
		.pending = 300 * MIB,
		.cached = 9 * GIB,
		.cached_largest = 1434 * MIB,
		.process_outside = 4 * GIB,
		.other_processes = 4 * GIB,
		.driver_reserve = 600 * MIB,
		.device_free = 140 * GIB - (137 * GIB + 1500 * MIB),
		.device_total = 140 * GIB };
	oom->rung_freed[1] = 300 * MIB;
	oom->rung_freed[2] = 44 * MIB;
	oom->holders[0] = (struct gpucache_holder){ 1, 1204, 70 * GIB };
	oom->holders[1] = (struct gpucache_holder){ 2, 322, 40 * GIB };
	oom->holders[2] = (struct gpucache_holder){ 3, 9118, 5 * GIB };
	oom->neighbours[0] =
		(struct gpucache_neighbour){ .pid = 1234, .bytes = 4 * GIB, .name = "jupyter" };
	oom->neighbours[1] = (struct gpucache_neighbour){ .pid = 77, .bytes = GPUCACHE_UNKNOWN };
	b->header->state |= GPUCACHE_STATE_OOM_SEEN;
	b->counters[0].n_oom++;
}

static void begin(struct recording_builder *b, uint32_t pid)
{
	builder_init(b);
	b->header->pid = pid;
	b->header->start_realtime_ns += (uint64_t)pid % 100 * 60 * 1000000000;
	add_device(b, 600);
	add_counters(b);
	add_native_stacks(b);
}

static void make_ended(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4711);
	add_live(&b);
	add_text(&b);
	builder_end(&b, dir, "ended.gpucache");
}

static void add_history(struct recording_builder *b)
{
	struct gpucache_point *points = (struct gpucache_point *)(b->history + 1);
	uint64_t *pending;

	b->history->device = 0;
	b->history->max_points = BUILDER_POINTS;
	b->history->n_points[b->history->live_buffer] = 6;
	pending = (uint64_t *)(points + 2 * BUILDER_POINTS) +
		  b->history->live_buffer * BUILDER_POINTS;
	points += b->history->live_buffer * b->history->max_points;
	for (uint64_t i = 0; i < 6; i++) {
		points[i] = (struct gpucache_point){ .time_ns = builder_ns(120.0 * (double)i),
			.requested_bytes = i * 24 * GIB,
			.live_bytes = i * 24 * GIB + i * GIB,
			.reserved_bytes = 32 * GIB + i * 20 * GIB };
		pending[i] = i * GIB / 2;
	}
}

static void make_oom(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4712);
	add_live(&b);
	add_text(&b);
	add_oom(&b, 1);
	add_oom(&b, 0);
	b.header->rank = 3;
	b.header->world_size = 8;
	b.header->state &= ~GPUCACHE_STATE_CLEAN_EXIT;
	b.header->end_ns = 0;
	builder_event(&b, GPUCACHE_EVENT_OOM, 3330 * MIB, 720.5);
	add_history(&b);
	builder_end(&b, dir, "oom.gpucache");
}

/* Python: the interpreter's frames give way to the Python frames that they ran. */
static void make_python(const char *dir)
{
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x401100, 0x401200 };
	struct recording_builder b;
	uint64_t python[3];
	uint32_t stack;

	builder_init(&b);
	b.header->pid = 4713;
	strcpy(b.header->exe, "/usr/bin/python3.11");
	strcpy(b.header->command, "python3 train.py --epochs 3");
	strcpy(b.header->job, "slurm-815");
	add_device(&b, 600);
	add_counters(&b);
	builder_module(&b, "/usr/bin/python3.11", 0x400000, 0x500000, 0);
	builder_module(&b, "/opt/lib/libtorch_cuda.so", 0x7e00000000, 0x7e10000000, 0x7e00000000);
	builder_module(&b, "/usr/local/cuda/lib64/libcudart.so.12", 0x7f00000000, 0x7f00100000,
		0x7f00000000);
	python[0] = python_frame(builder_code(&b, "forward", "/srv/nets/model.py", 0x030b, 210,
					 lines_311, sizeof lines_311),
		4, 0);
	python[1] = python_frame(builder_code(&b, "train_step", "/srv/nets/train.py", 0x030b, 38,
					 lines_311, sizeof lines_311),
		0, 0);
	python[2] = python_frame(builder_code(&b, "<module>", "/srv/nets/train.py", 0x030b, 1,
					 lines_311, sizeof lines_311),
		4, 1);
	stack = builder_stack(&b, native, 4, python, 3);
	builder_live(&b, 512 * MIB, 512 * MIB, stack, 3.5);
	builder_live(&b, 256 * MIB, 256 * MIB, stack, 9.25);
	b.header->dropped_python = 12;
	builder_end(&b, dir, "python.gpucache");
}

/* Killed while two slots were being changed; nobody asked the driver about its GPU. */
static void make_killed(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4714);
	add_live(&b);
	b.header->state = GPUCACHE_STATE_OPENED;
	b.header->end_ns = 0;
	b.header->dropped_blocks = 1500;
	b.devices[0].nvml = 0;
	b.blocks[3].seq = 7;
	b.blocks[4].seq = 9;
	for (int i = 0; i < 20; i++)
		builder_event(&b, GPUCACHE_EVENT_MALLOC, MIB, 100 + i);
	b.events[2].seq = 0;
	builder_end(&b, dir, "killed.gpucache");
}

/* A child of multiprocessing. */
static void make_exited(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4716);
	add_live(&b);
	b.header->state = GPUCACHE_STATE_OPENED | GPUCACHE_STATE_EXITED;
	builder_end(&b, dir, "exited.gpucache");
}

static void make_damaged(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4715);
	add_live(&b);
	builder_entry(&b, GPUCACHE_REGION_EVENTS)->offset = UINT64_C(1) << 60;
	builder_entry(&b, GPUCACHE_REGION_SITES)->count = UINT64_C(1) << 60;
	memset((char *)builder_region(&b, GPUCACHE_REGION_STACKS) + 64, 0xff, 16);
	builder_end(&b, dir, "damaged.gpucache");
}

static void make_unused(const char *dir)
{
	struct recording_builder b;

	builder_init(&b);
	b.header->pid = 4716;
	builder_end(&b, dir, "unused.gpucache");
}

/* A program that names its ranges: numbered ones that share a name, a domain of NVTX, one without a name here. */
static void make_tags(const char *dir)
{
	struct recording_builder b;
	struct gpucache_oom *oom;
	uint32_t train, step, forward, layer;

	begin(&b, 4717);
	train = builder_tag(&b, 0, "train");
	step = builder_tag(&b, train, "step *");
	forward = builder_tag(&b, step, "forward");
	layer = builder_tag(&b, forward,
		"transformer.encoder.layers.*.self_attention.output_projection.weight");
	add_live(&b);
	for (uint32_t i = 0; i < b.n_blocks; i++)
		b.blocks[i].tag = i < 10   ? train
				  : i < 16 ? forward
				  : i < 22 ? layer
				  : i < 40 ? 0
					   : 9;
	b.blocks[23].tag = builder_tag(&b, 0, "net:gradients");
	b.blocks[24].tag = step;
	b.header->dropped_tags = 1234;
	b.counters[0].peak_pending_bytes = 3 * GIB;
	b.counters[0].peak_host_bytes = 9 * MIB;
	b.counters[0].n_gc_segments = 17;
	b.counters[0].n_fence = 20480;
	b.counters[0].n_sync = 12;
	add_oom(&b, 0);
	oom = &b.ooms[0];
	oom->tag = layer;
	oom->n_tags = 3;
	oom->tag_rest_bytes = 2 * GIB;
	oom->tags[0] = (struct gpucache_tag_holder){ forward, 8000, 90 * GIB };
	oom->tags[1] = (struct gpucache_tag_holder){ 0, 2000, 20 * GIB };
	oom->tags[2] = (struct gpucache_tag_holder){ layer, 60, 8 * GIB };
	builder_end(&b, dir, "tags.gpucache");
}

/* JAX: a block of 75 % of the GPU, which it gave back when it ended, and a context. */
static void make_xla(const char *dir)
{
	const uint64_t native[] = { 0x2001000, 0x401400 };
	struct recording_builder b;
	uint32_t stack;

	begin(&b, 4723);
	builder_module(&b,
		"/opt/venv/lib/python3.11/site-packages/jax_plugins/xla_cuda12/xla_cuda_plugin.so",
		0x2000000, 0x3000000, 0x2000000);
	stack = builder_stack(&b, native, 2, NULL, 0);
	builder_live(&b, 500 * MIB, 500 * MIB, stack, 1)->kind = GPUCACHE_KIND_CONTEXT;
	b.peaks[1].n_holders = 1;
	b.peaks[1].rest_bytes = 0;
	b.peaks[1].kind_bytes[GPUCACHE_KIND_CONTEXT] = 500 * MIB;
	b.peaks[1].holders[0] = (struct gpucache_holder){ stack, 1, 105 * GIB };
	builder_line(&b, "env XLA_PYTHON_CLIENT_PREALLOCATE=false");
	builder_end(&b, dir, "xla.gpucache");
}

/* Two threads and four streams: the legacy one, two of the same handle, one that found no record, and plain cudaMalloc. */
static void make_streams(const char *dir)
{
	static const uint32_t numbers[] = { 1, 2, 3, GPUCACHE_STREAM_OTHER, 0 };
	struct gpucache_stream *streams;
	struct recording_builder b;

	begin(&b, 4722);
	streams = builder_region(&b, GPUCACHE_REGION_STREAMS);
	streams[1] = (struct gpucache_stream){ .handle = GPUCACHE_STREAM_LEGACY,
		.first_ns = builder_ns(1) };
	streams[2] = (struct gpucache_stream){ .handle = 0x55d0c8e7700, .end_ns = builder_ns(3) };
	streams[3] = (struct gpucache_stream){ .handle = 0x55d0c8e7700, .first_ns = builder_ns(4) };
	add_live(&b);
	for (uint32_t i = 0; i < b.n_blocks; i++) {
		b.blocks[i].thread = i < 5 ? 4723 : 4722;
		b.blocks[i].flags |= numbers[i % 5] << GPUCACHE_BLOCK_STREAM_SHIFT;
	}
	builder_end(&b, dir, "streams.gpucache");
}

/* Two GPUs that CUDA_VISIBLE_DEVICES reordered; memory ran out on both. */
static void make_gpus(const char *dir)
{
	struct recording_builder b;

	begin(&b, 4719);
	b.devices[1] = b.devices[0];
	b.devices[1].ordinal = 1;
	strcpy(b.devices[1].uuid, "GPU-99999999-2222-3333-4444-555555555555");
	b.devices[0].physical = 6 + 1;
	b.devices[1].physical = 2 + 1;
	strcpy(b.devices[0].pci_bus_id, "0000:c7:00.0");
	strcpy(b.devices[1].pci_bus_id, "0000:17:00.0");
	b.counters[1] = b.counters[0];
	b.counters[1].context = 0xbeef;
	b.counters[1].device = 1;
	add_live(&b);
	for (uint32_t i = 0; i < b.n_blocks; i += 3)
		b.blocks[i].device = 1;
	add_oom(&b, 0);
	add_oom(&b, 0);
	b.ooms[0].device = 1;
	b.ooms[0].verdict = GPUCACHE_VERDICT_EXHAUSTED;
	builder_end(&b, dir, "gpus.gpucache");
}

/* Two threads and one more; a range a step: the first names are kept apart, the later ones the library folds. */
static void make_steps(const char *dir)
{
	static const char *const steps[] = { "step 0", "step 1", "step 2", "step *" };
	struct recording_builder b;
	uint32_t tags[8];

	begin(&b, 4720);
	for (unsigned i = 0; i < 4; i++) {
		uint32_t step = builder_tag(&b, 0, steps[i]);

		tags[2 * i] = builder_tag(&b, step, "forward");
		tags[2 * i + 1] = builder_tag(&b, step, "optim");
	}
	for (unsigned i = 0; i < 32; i++) {
		unsigned step = i < 3 ? i : 3;

		builder_live(&b, 20 * MIB, 20 * MIB, 1, i)->thread = i % 4 ? 4731 : 4720;
		b.blocks[b.n_blocks - 1].tag = tags[2 * step + 1];
	}
	builder_live(&b, 32 * MIB, 32 * MIB, 2, 40);
	b.blocks[b.n_blocks - 1].tag = tags[6];
	builder_live(&b, 24 * MIB, 24 * MIB, 2, 41);
	b.blocks[b.n_blocks - 1].tag = builder_tag(&b, 0, "encoder 1");
	builder_live(&b, 16 * MIB, 16 * MIB, 2, 41);
	b.blocks[b.n_blocks - 1].tag = builder_tag(&b, 0, "encoder 2");
	builder_end(&b, dir, "steps.gpucache");
}

/* Of another version; of one before the first release; of a machine that writes numbers the other way round. */
static void make_others(const char *dir, const char *foreign)
{
	struct recording_builder b;

	builder_init(&b);
	b.header->major = 2;
	builder_end(&b, dir, "version.gpucache");
	builder_init(&b);
	b.header->minor = GPUCACHE_FORMAT_OLDEST - 1;
	builder_end(&b, foreign, "older.gpucache");
	builder_init(&b);
	b.header->endian = 0x04030201;
	builder_end(&b, foreign, "byte_order.gpucache");
}

/* Of a version to come: longer records, and a region that nobody knows. */
static void make_newer(const char *dir)
{
	struct recording_builder b;
	struct gpucache_region *entry;

	begin(&b, 4717);
	add_live(&b);
	b.header->minor = 99;
	builder_entry(&b, GPUCACHE_REGION_COUNTERS)->record_size += 64;
	memset(b.counters + 1, 0xff, 64);
	entry = &b.header->regions[b.header->n_regions++];
	*entry = *builder_entry(&b, GPUCACHE_REGION_TEXT);
	entry->kind = 4711;
	builder_end(&b, dir, "newer.gpucache");
}

/* One call of each file: below it libcudart and libcuda, above it the program. */
static void make_libraries(const char *dir)
{
	static const char *const paths[] = {
		"/opt/train/bin/train",
		"/usr/lib/x86_64-linux-gnu/libcuda.so.1",
		"/usr/local/cuda/lib64/libcudart.so.12",
		"/opt/venv/lib/python3.11/site-packages/nvidia/nccl/lib/libnccl.so.2",
		"/usr/local/cuda/lib64/libcublasLt.so.12",
		"/usr/local/cuda/lib64/libcublas.so.12",
		"/opt/venv/lib/python3.11/site-packages/cupy_backends/cuda/api/runtime.so",
		"/opt/venv/lib/python3.11/site-packages/newnet/_C.so",
		"/opt/torch/lib/libphysics.so.3",
	};
	struct recording_builder b;

	builder_init(&b);
	b.header->pid = 4717;
	add_device(&b, 600);
	add_counters(&b);
	for (unsigned i = 0; i < sizeof paths / sizeof paths[0]; i++) {
		uint64_t start = (i + 1) * 0x1000000;
		uint64_t native[] = { 0x2001000, 0x3001000, start + 0x1000, 0x1002000 };

		builder_module(&b, paths[i], start, start + 0x100000, start);
		builder_live(&b, (i + 1) * 100 * MIB, (i + 1) * 100 * MIB,
			builder_stack(&b, native, 4, NULL, 0), i);
	}
	builder_live(&b, 3 * MIB, 4 * MIB, builder_stack(&b, (uint64_t[]){ 0x99 }, 1, NULL, 0), 10);
	builder_live(&b, 2 * MIB, 2 * MIB, 4711, 10);
	builder_live(&b, 1 * MIB, 2 * MIB, 0, 10);
	builder_end(&b, dir, "../libraries.gpucache");
}

/* Four ranks of a job on two hosts: rank 2 holds more than the others and fails first, rank 1 after it. */
static void make_rank(const char *dir, int rank)
{
	struct recording_builder b;
	char name[32];

	begin(&b, (uint32_t)(5000 + rank));
	b.header->start_realtime_ns = BUILDER_START_REALTIME_NS + (uint64_t)rank * 1000000;
	b.header->rank = rank;
	b.header->world_size = 4;
	strcpy(b.header->job, "slurm-4711");
	strcpy(b.header->host, rank < 2 ? "gpu07" : "gpu08.cluster.example");
	b.devices[0].physical = (uint64_t)rank % 2 * 3 + 1;
	b.counters[0].peak_reserved_bytes += (rank == 2) * 30 * GIB;
	if (rank == 1 || rank == 2) {
		add_oom(&b, 0);
		b.ooms[0].time_ns -= (rank == 2) * UINT64_C(1500000000);
	}
	snprintf(name, sizeof name, "rank%d.gpucache", rank);
	builder_end(&b, dir, name);
}

/* RANKS is of a job; DIR is for what this version writes, FOREIGN for what others do. */
int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	for (int i = 1; i < argc; i++)
		mkdir(argv[i], 0700);
	for (int rank = 0; rank < 4; rank++)
		make_rank(argv[3], rank);
	make_ended(argv[1]);
	make_oom(argv[1]);
	make_python(argv[1]);
	make_killed(argv[1]);
	make_exited(argv[2]);
	make_damaged(argv[1]);
	make_unused(argv[1]);
	make_tags(argv[1]);
	make_others(argv[1], argv[2]);
	make_newer(argv[2]);
	make_gpus(argv[2]);
	make_steps(argv[2]);
	make_streams(argv[2]);
	make_xla(argv[2]);
	make_libraries(argv[1]);
	make_torch(argv[1]);
	make_torch_oom(argv[1]);
	make_torch_use(argv[1]);
	make_torch_pass(argv[1]);
	make_torch_kept(argv[1]);
	make_torch_results(argv[1]);
	make_torch_drawn(argv[1]);
	make_torch_pinned(argv[1]);
	return 0;
}
