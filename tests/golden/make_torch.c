/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of PyTorch programs: what its allocator has, and failures of each kind of use. */
#include <stdio.h>
#include <string.h>

#include "tests/golden/make_recordings.h"

static uint32_t torch_stack(struct recording_builder *b, const char *library, const char *file,
	uint32_t in_library, const char *function, uint32_t line)
{
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x7e00003000, 0x7e00004000,
		0x7e00005000, 0x7e00006000, 0x7e00007000, 0x401100 };
	char path[200];
	uint64_t python[2];

	snprintf(path, sizeof path, "/opt/venv/lib/python3.11/site-packages/torch/%s", file);
	python[0] = python_frame(
		builder_code(b, library, path, 0x030b, in_library - 2, lines_311, sizeof lines_311),
		4, 0);
	python[1] = python_frame(builder_code(b, function, "/srv/nets/train.py", 0x030b, line,
					 lines_311, sizeof lines_311),
		0, 1);
	return builder_stack(b, native, 8, python, 2);
}

/* A tensor within memory that is in the books already. */
static void add_tensor(struct recording_builder *b, uint64_t size, uint32_t stack, double at_s)
{
	builder_live(b, size, size, stack, at_s)->kind = GPUCACHE_KIND_TENSOR;
	b->counters[0].requested_bytes -= size;
	b->counters[0].live_bytes -= size;
	b->counters[0].reserved_bytes -= size;
	b->counters[0].n_blocks--;
}

/* Who asks in a training program. */
struct torch_sites {
	uint32_t weights, states, forward;
};

static struct torch_sites begin_torch(struct recording_builder *b)
{
	struct torch_sites sites;

	builder_init(b);
	b->header->pid = 4718;
	strcpy(b->header->exe, "/usr/bin/python3.11");
	strcpy(b->header->command, "python3 train.py");
	add_device(b, 600);
	add_counters(b);
	builder_module(b, "/usr/bin/python3.11", 0x400000, 0x500000, 0);
	builder_module(b, "/opt/lib/libtorch_cuda.so", 0x7e00000000, 0x7e10000000, 0x7e00000000);
	builder_module(b, "/usr/local/cuda/lib64/libcudart.so.12", 0x7f00000000, 0x7f00100000,
		0x7f00000000);
	sites.weights = torch_stack(
		b, "Module.to.<locals>.convert", "nn/modules/module.py", 1300, "main", 12);
	sites.states = torch_stack(b, "Adam._init_group", "optim/adam.py", 179, "train_step", 40);
	sites.forward =
		torch_stack(b, "Linear.forward", "nn/modules/linear.py", 134, "train_step", 38);
	return sites;
}

static void add_tensor_event(struct recording_builder *b, enum gpucache_event_kind kind,
	uint64_t size, uint32_t stack, double at_s)
{
	struct gpucache_event *event = &b->events[b->n_events];

	builder_event(b, kind, size, at_s);
	event->alloc_kind = GPUCACHE_KIND_TENSOR;
	event->stack = stack;
}

/* The tensors of make_torch as they came, and activations that went. */
static void add_tensor_events(struct recording_builder *b, const struct torch_sites *sites)
{
	add_tensor_event(b, GPUCACHE_EVENT_MALLOC, 400 * MIB, sites->weights, 1);
	add_tensor_event(b, GPUCACHE_EVENT_MALLOC, 900 * MIB, sites->forward, 2);
	add_tensor_event(b, GPUCACHE_EVENT_FREE, 900 * MIB, sites->forward, 2.4);
	add_tensor_event(b, GPUCACHE_EVENT_MALLOC, 400 * MIB, sites->states, 2.5);
	add_tensor_event(b, GPUCACHE_EVENT_MALLOC, 400 * MIB, sites->states, 2.75);
	add_tensor_event(b, GPUCACHE_EVENT_MALLOC, 700 * MIB, sites->forward, 3);
}

void make_torch(const char *dir)
{
	struct recording_builder b;
	struct torch_sites sites = begin_torch(&b);
	struct gpucache_torch *torch;

	builder_live(&b, 2 * GIB, 2 * GIB, 0, 1)->flags = GPUCACHE_BLOCK_ARENA;
	builder_live(&b, 512 * MIB, 512 * MIB, 0, 2)->flags = GPUCACHE_BLOCK_ARENA;
	builder_live(&b, 100 * MIB, 100 * MIB, sites.forward, 2);
	add_tensor(&b, 400 * MIB, sites.weights, 1);
	add_tensor(&b, 400 * MIB, sites.states, 2.5);
	add_tensor(&b, 400 * MIB, sites.states, 2.75);
	add_tensor(&b, 700 * MIB, sites.forward, 3);
	torch = builder_region(&b, GPUCACHE_REGION_TORCH);
	*torch = (struct gpucache_torch){
		.n_malloc = 4321,
		.n_free = 4317,
		.allocated_bytes = 1900 * MIB,
		.reserved_bytes = 2560 * MIB,
		.peak_allocated_bytes = 2300 * MIB,
		.peak_reserved_bytes = 2560 * MIB,
		.n_failed = 1,
		.failed_bytes = 3 * GIB,
	};
	add_tensor_events(&b, &sites);
	builder_line(&b, "own cache: PyTorch");
	builder_end(&b, dir, "../torch.gpucache");
}

/* Failure 1: PyTorch gave up behind the driver's refusal.  Failure 2: it kept to a limit of its own. */
void make_torch_oom(const char *dir)
{
	struct recording_builder b;
	struct torch_sites sites = begin_torch(&b);
	struct gpucache_oom *oom = &b.ooms[0];
	const uint64_t nccl = 0x7d00000100;

	builder_module(&b, "/opt/lib/libnccl.so.2", 0x7d00000000, 0x7d10000000, 0x7d00000000);
	*oom = (struct gpucache_oom){ .seq = 2,
		.number = 1,
		.time_ns = builder_ns(720.5),
		.requested = 20 * MIB,
		.rounded = 20 * MIB,
		.short_by = 16 * MIB,
		.stack = sites.forward,
		.thread = 4718,
		.kind = GPUCACHE_KIND_DEVICE,
		.verdict = GPUCACHE_VERDICT_FRAGMENTED,
		.strength = GPUCACHE_STRENGTH_LIKELY,
		.n_holders = 3,
		.n_sites = 36,
		.rest_bytes = 34 * GIB,
		.torch = { .requested = 6 * MIB, .allocated = 110 * GIB, .reserved = 134 * GIB } };
	oom->balance = (struct gpucache_balance){ .requested = 139 * GIB - 4 * MIB,
		.direct = GIB,
		.device_free = 4 * MIB,
		.device_total = 140 * GIB };
	oom->kind_bytes[GPUCACHE_KIND_CONTEXT] = GIB;
	oom->holders[0] = (struct gpucache_holder){ sites.forward, 1204, 70 * GIB };
	oom->holders[1] = (struct gpucache_holder){ sites.states, 322, 18 * GIB };
	oom->holders[2] = (struct gpucache_holder){ sites.weights, 161, 17 * GIB - 4 * MIB };
	b.ooms[1] = *oom;
	oom = &b.ooms[1];
	oom->number = 2;
	oom->kind = GPUCACHE_KIND_TENSOR;
	oom->verdict = GPUCACHE_VERDICT_LIMIT;
	oom->strength = GPUCACHE_STRENGTH_CERTAIN;
	oom->requested = oom->rounded = oom->short_by = oom->torch.requested = 2 * GIB;
	oom->balance.requested -= 3 * GIB;
	oom->balance.device_free += 3 * GIB;
	oom->rest_bytes -= 3 * GIB;
	/* Failure 3: another library asked, while PyTorch kept memory that nothing lay in.  4: a cache that grew. */
	b.ooms[2] = b.ooms[0];
	oom = &b.ooms[2];
	oom->number = 3;
	oom->stack = builder_stack(&b, &nccl, 1, NULL, 0);
	oom->verdict = GPUCACHE_VERDICT_EXHAUSTED;
	oom->torch.requested = 0;
	b.ooms[3] = b.ooms[0];
	oom = &b.ooms[3];
	oom->number = 4;
	oom->verdict = GPUCACHE_VERDICT_GROWTH;
	oom->growth_bytes = 30 * GIB;
	oom->growth_stack = torch_stack(&b, "cat", "functional.py", 1300, "attend", 12);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 4;
	builder_line(&b, "own cache: PyTorch");
	builder_end(&b, dir, "../torch_oom.gpucache");
}

/* What is asked for, and what grows, decides what can be done. */
void make_torch_use(const char *dir)
{
	struct recording_builder b;
	struct torch_sites sites = begin_torch(&b);
	struct gpucache_oom *oom = &b.ooms[0];
	uint32_t student = torch_stack(
		&b, "Module.to.<locals>.convert", "nn/modules/module.py", 1300, "load_student", 12);
	uint32_t evaluate =
		torch_stack(&b, "Linear.forward", "nn/modules/linear.py", 134, "evaluate", 50);

	*oom = (struct gpucache_oom){ .seq = 2,
		.number = 1,
		.time_ns = builder_ns(720.5),
		.requested = 2 * GIB,
		.rounded = 2 * GIB,
		.short_by = GIB,
		.stack = sites.states,
		.thread = 4718,
		.kind = GPUCACHE_KIND_DEVICE,
		.verdict = GPUCACHE_VERDICT_EXHAUSTED,
		.strength = GPUCACHE_STRENGTH_CERTAIN,
		.n_holders = 3,
		.n_sites = 3,
		.torch = { .requested = 2 * GIB, .allocated = 138 * GIB, .reserved = 138 * GIB } };
	oom->balance = (struct gpucache_balance){
		.requested = 138 * GIB, .direct = GIB, .device_free = GIB, .device_total = 140 * GIB
	};
	oom->kind_bytes[GPUCACHE_KIND_CONTEXT] = GIB;
	oom->holders[0] = (struct gpucache_holder){ sites.weights, 322, 64 * GIB };
	oom->holders[1] = (struct gpucache_holder){ sites.forward, 322, 43 * GIB };
	oom->holders[2] = (struct gpucache_holder){ sites.states, 322, 31 * GIB };
	for (unsigned i = 1; i < 4; i++) {
		b.ooms[i] = *oom;
		b.ooms[i].number = i + 1;
	}
	b.ooms[1].stack = student;
	b.ooms[2].verdict = b.ooms[3].verdict = GPUCACHE_VERDICT_GROWTH;
	b.ooms[2].growth_bytes = b.ooms[3].growth_bytes = 40 * GIB;
	b.ooms[2].stack = b.ooms[2].growth_stack = sites.forward;
	b.ooms[3].stack = b.ooms[3].growth_stack = evaluate;
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 4;
	builder_end(&b, dir, "../torch_use.gpucache");
}

#define PACKAGES "/opt/venv/lib/python3.11/site-packages/"

static uint64_t python_line(struct recording_builder *b, const char *function, const char *file,
	uint32_t line, int outer)
{
	return python_frame(
		builder_code(b, function, file, 0x030b, line, lines_311, sizeof lines_311), 0,
		outer);
}

/* A layer, in a line of the model's forward, which a line of the program called; 0: not through a model. */
static uint32_t pass_stack(struct recording_builder *b, uint32_t in_model, uint32_t in_program)
{
	static const char module[] = PACKAGES "torch/nn/modules/module.py";
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x7e00003000, 0x7e00004000,
		0x7e00005000, 0x7e00006000, 0x7e00007000, 0x401100 };
	uint64_t frames[5];
	uint32_t n = 0;

	if (in_model) {
		frames[n++] = python_line(
			b, "Linear.forward", PACKAGES "torch/nn/modules/linear.py", 134, 0);
		frames[n++] = python_line(b, "Module._call_impl", module, 1700, 0);
		frames[n++] = python_line(b, "Net.forward", "/srv/nets/net.py", in_model, 0);
		frames[n++] = python_line(b, "Module._call_impl", module, 1700, 0);
	}
	frames[n++] = python_line(b, "train_step", "/srv/nets/train.py", in_program, 1);
	return builder_stack(b, native, 8, frames, n);
}

/* A layer of a package's model, which the program called, called back by a trainer that it started. */
static uint32_t package_stack(struct recording_builder *b, uint32_t in_program)
{
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x7e00003000, 0x7e00004000,
		0x7e00005000, 0x7e00006000, 0x7e00007000, 0x401100 };
	uint64_t frames[5] = {
		python_line(b, "ResNet.forward", PACKAGES "torchvision/models/resnet.py", 285, 0),
		python_line(b, "Module._call_impl", PACKAGES "torch/nn/modules/module.py", 1700, 0),
		python_line(b, "evaluate", "/srv/nets/train.py", in_program, 0),
		python_line(b, "Trainer.fit", PACKAGES "lightning/trainer.py", 600, 0),
		python_line(b, "main", "/srv/nets/train.py", 60, 1),
	};

	return builder_stack(b, native, 8, frames, 5);
}

static struct gpucache_oom *begin_kept(struct recording_builder *b, uint32_t number)
{
	struct gpucache_oom *oom = &b->ooms[number - 1];

	*oom = (struct gpucache_oom){ .seq = 2,
		.number = number,
		.time_ns = builder_ns(720.5),
		.requested = 20 * MIB,
		.rounded = 20 * MIB,
		.short_by = 20 * MIB,
		.thread = 4718,
		.kind = GPUCACHE_KIND_DEVICE,
		.verdict = GPUCACHE_VERDICT_EXHAUSTED,
		.strength = GPUCACHE_STRENGTH_LIKELY,
		.torch = { .requested = 20 * MIB, .allocated = 138 * GIB, .reserved = 139 * GIB } };
	oom->balance = (struct gpucache_balance){
		.requested = 139 * GIB, .direct = GIB, .device_free = 0, .device_total = 140 * GIB
	};
	oom->kind_bytes[GPUCACHE_KIND_CONTEXT] = GIB;
	oom->rest_bytes = 138 * GIB;
	return oom;
}

static void add_holder(struct gpucache_oom *oom, uint32_t stack, uint64_t n_blocks, uint64_t bytes)
{
	oom->holders[oom->n_holders++] = (struct gpucache_holder){ stack, n_blocks, bytes };
	oom->n_sites = oom->n_holders;
	oom->rest_bytes -= bytes;
}

static void add_site(struct recording_builder *b, uint32_t stack, uint64_t n_blocks, uint64_t bytes,
	double first_s, double last_s)
{
	struct gpucache_site *site = b->sites + 1;

	while (site->stack)
		site++;
	*site = (struct gpucache_site){ .stack = stack,
		.live_bytes = bytes,
		.live_blocks = n_blocks,
		.total_bytes = bytes,
		.total_blocks = n_blocks,
		.first_ns = builder_ns(first_s),
		.last_ns = builder_ns(last_s) };
}

static uint32_t in_python(struct recording_builder *b, uint64_t inner, const char *function)
{
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x7e00003000, 0x7e00004000,
		0x7e00005000, 0x7e00006000, 0x7e00007000, 0x401100 };
	uint64_t frames[2] = { inner, python_line(b, function, "/srv/nets/train.py", 9, 1) };

	return inner ? builder_stack(b, native, 8, frames, 2)
		     : builder_stack(b, native, 8, frames + 1, 1);
}

/* What a site made of which most is gone again. */
static void add_passed(struct recording_builder *b, uint32_t stack, uint64_t n_made, double first_s)
{
	struct gpucache_site *site = b->sites + 1;

	add_site(b, stack, n_made, n_made * MIB, first_s, 720);
	while (site[1].stack)
		site++;
	site->live_blocks = 1;
	site->live_bytes = MIB;
}

/* Results of twelve passes; of one pass of twelve layers; of twelve without a model. */
void make_torch_kept(const char *dir)
{
	struct recording_builder b;
	struct torch_sites sites = begin_torch(&b);
	uint32_t layers = pass_stack(&b, 30, 12);
	uint32_t first = pass_stack(&b, 28, 12);
	uint32_t table = pass_stack(&b, 20, 12);
	uint32_t loop = pass_stack(&b, 0, 12);
	uint32_t other = pass_stack(&b, 0, 14);
	struct gpucache_oom *oom = begin_kept(&b, 1);

	oom->stack = layers;
	add_holder(oom, layers, 144, 110 * GIB);
	add_holder(oom, first, 12, 20 * GIB);
	add_holder(oom, sites.weights, 90, 2 * GIB);
	add_holder(oom, table, 1, MIB);
	add_site(&b, layers, 144, 110 * GIB, 10, 720);
	add_site(&b, in_python(&b, 0, "to_device"), 12, 12 * MIB, 9, 700);
	oom = begin_kept(&b, 2);
	oom->stack = layers;
	add_holder(oom, layers, 144, 120 * GIB);
	add_holder(oom, first, 1, GIB);
	oom = begin_kept(&b, 3);
	oom->stack = loop;
	add_holder(oom, loop, 24, 60 * GIB);
	add_holder(oom, other, 12, 60 * GIB);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 3;
	builder_end(&b, dir, "../torch_kept.gpucache");
}

/*
 * Results of 200 passes, beside the pass that runs: of softmax in the program, of a package's model that is evaluated.
 * And 400 tiles of an image, cut before the model ran; inputs that get longer.
 */
void make_torch_results(const char *dir)
{
	struct recording_builder b;
	uint32_t output, softmax, evaluated, tiles;
	struct gpucache_oom *oom;

	(void)begin_torch(&b);
	output = pass_stack(&b, 30, 20);
	softmax = in_python(&b, 0, "forward_all");
	evaluated = package_stack(&b, 22);
	tiles = in_python(&b, 0, "forward_tiles");
	add_passed(&b, output, 401, 100);
	add_site(&b, in_python(&b, 0, "to_device"), 500, 12 * MIB, 9, 719);
	add_site(&b, softmax, 200, 120 * GIB, 101, 720);
	add_site(&b, evaluated, 400, 120 * GIB, 101, 720);
	add_site(&b, tiles, 400, 120 * GIB, 11, 90);
	for (unsigned i = 1; i <= 3; i++) {
		oom = begin_kept(&b, i);
		oom->stack = output;
		add_holder(oom, output, 1, GIB);
		add_holder(oom,
			i == 1   ? softmax
			: i == 2 ? evaluated
				 : tiles,
			i == 1 ? 200 : 400, 120 * GIB);
	}
	oom = begin_kept(&b, 4);
	oom->verdict = GPUCACHE_VERDICT_GROWTH;
	oom->stack = oom->growth_stack = output;
	oom->growth_bytes = 60 * GIB;
	oom->grows_how = GPUCACHE_GROWS_RENEWED;
	add_holder(oom, output, 1, 130 * GIB);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 4;
	builder_end(&b, dir, "../torch_results.gpucache");
}

/*
 * 24 layers in a list, since the last data came; the same where the library took that for growth; a try of less while
 * that is still there; a checkpoint beside the weights.
 */
void make_torch_pass(const char *dir)
{
	struct recording_builder b;
	struct torch_sites sites = begin_torch(&b);
	uint32_t norms = pass_stack(&b, 40, 16);
	uint32_t listed = pass_stack(&b, 41, 16);
	uint64_t load = python_line(&b, "load_tensor", PACKAGES "torch/serialization.py", 1800, 0);
	struct gpucache_oom *oom = begin_kept(&b, 1);

	oom->stack = listed;
	add_holder(oom, listed, 24, 70 * GIB);
	add_holder(oom, norms, 24, 60 * GIB);
	add_site(&b, in_python(&b, 0, "to_device"), 12, 12 * MIB, 9, 700);
	add_site(&b, listed, 24, 70 * GIB, 710, 720);
	b.ooms[1] = b.ooms[2] = *oom;
	oom = &b.ooms[1];
	oom->number = 2;
	oom->verdict = GPUCACHE_VERDICT_GROWTH;
	oom->also = 1u << GPUCACHE_VERDICT_EXHAUSTED;
	oom->growth_stack = listed;
	oom->growth_bytes = 60 * GIB;
	oom = &b.ooms[2];
	oom->number = 3;
	oom->torch.requested = 10 * MIB;
	oom = begin_kept(&b, 4);
	oom->stack = sites.states;
	add_holder(oom, sites.weights, 90, 40 * GIB);
	add_holder(oom, in_python(&b, load, "resume"), 90, 40 * GIB);
	add_holder(oom, sites.states, 80, 50 * GIB);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 4;
	builder_end(&b, dir, "../torch_pass.gpucache");
}

/* What a pipeline makes under torch.no_grad(), its decorator: the program called it with a batch that is too large. */
void make_torch_drawn(const char *dir)
{
	struct recording_builder b;
	const uint64_t native[] = { 0x7f00001010, 0x7e00002000, 0x7e00003000, 0x7e00004000,
		0x7e00005000, 0x7e00006000, 0x7e00007000, 0x401100 };
	struct gpucache_oom *oom;
	uint64_t frames[4];
	uint32_t stack;

	(void)begin_torch(&b);
	frames[0] = python_line(&b, "Conv2d.forward", PACKAGES "torch/nn/modules/conv.py", 560, 0);
	frames[1] = python_line(
		&b, "Pipeline.__call__", PACKAGES "diffusers/pipelines/pipeline_flux.py", 130, 0);
	frames[2] = python_line(&b, "context_decorator.<locals>.decorate_context",
		PACKAGES "torch/utils/_contextlib.py", 124, 0);
	frames[3] = python_line(&b, "draw", "/srv/nets/train.py", 9, 1);
	stack = builder_stack(&b, native, 8, frames, 4);
	oom = begin_kept(&b, 1);
	oom->stack = stack;
	add_holder(oom, stack, 11, 130 * GIB);
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 1;
	builder_end(&b, dir, "../torch_drawn.gpucache");
}

/* A loader's batches in pinned memory, until there was no more of that. */
void make_torch_pinned(const char *dir)
{
	struct recording_builder b;
	struct gpucache_oom *oom;
	uint32_t loader;

	(void)begin_torch(&b);
	loader = torch_stack(
		&b, "pin_memory", "utils/data/_utils/pin_memory.py", 60, "train_step", 38);
	for (int i = 0; i < 3; i++)
		builder_live(&b, 512 * MIB, 512 * MIB, loader, 2 + i)->kind = GPUCACHE_KIND_HOST;
	builder_live(&b, GIB, GIB, 0, 800)->kind = GPUCACHE_KIND_HOST; /* after the failure */
	oom = &b.ooms[0];
	*oom = (struct gpucache_oom){ .seq = 2,
		.number = 1,
		.time_ns = builder_ns(720.5),
		.requested = 512 * MIB,
		.rounded = 512 * MIB,
		.stack = loader,
		.thread = 4718,
		.kind = GPUCACHE_KIND_HOST };
	oom->balance =
		(struct gpucache_balance){ .device_free = 140 * GIB, .device_total = 140 * GIB };
	b.header->state |= GPUCACHE_STATE_OOM_SEEN;
	b.counters[0].n_oom = 1;
	builder_end(&b, dir, "../torch_pinned.gpucache");
}
