/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training loop over the CUDA driver API.  It knows nothing of gpucache.
 *
 * --door says how the program gets at the driver's functions; each is used by real programs:
 *   link   calls them; the loader binds them                              (default)
 *   dlsym  dlopen("libcuda.so.1") and dlsym of each name                  (Triton, JAX, TensorFlow)
 *   proc   dlsym of cuGetProcAddress_v2 alone, which gives all the others (the CUDA runtime itself)
 *
 * On stdout: a line each --every steps, with --print-live the bytes asked for and held, and a
 * last line with a checksum.  Exit status 0; 1 when CUDA failed or data came back wrong; 2 usage.
 */
#include <dlfcn.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda.h>

#define N_LAYERS     6
#define WEIGHT_BYTES ((size_t)1 << 20)
#define MARK_BYTES   ((size_t)4096)
#define OOM_GROWTH   ((size_t)96 << 20)
#define LEAK_GROWTH  ((size_t)1 << 20)

/* The CUDA version whose functions the door `proc` asks for. */
#define PROC_VERSION 12000

/* Every function of the driver that is used here: our name, its name without and with version. */
#define DRIVER_FUNCTIONS(X)                                                               \
	X(init, "cuInit", "cuInit", cuInit)                                               \
	X(device_get, "cuDeviceGet", "cuDeviceGet", cuDeviceGet)                          \
	X(ctx_retain, "cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRetain",             \
		cuDevicePrimaryCtxRetain)                                                 \
	X(ctx_set, "cuCtxSetCurrent", "cuCtxSetCurrent", cuCtxSetCurrent)                 \
	X(ctx_sync, "cuCtxSynchronize", "cuCtxSynchronize", cuCtxSynchronize)             \
	X(mem_alloc, "cuMemAlloc", "cuMemAlloc_v2", cuMemAlloc)                           \
	X(mem_free, "cuMemFree", "cuMemFree_v2", cuMemFree)                               \
	X(copy_in, "cuMemcpyHtoDAsync", "cuMemcpyHtoDAsync_v2", cuMemcpyHtoDAsync)        \
	X(copy_out, "cuMemcpyDtoHAsync", "cuMemcpyDtoHAsync_v2", cuMemcpyDtoHAsync)       \
	X(copy, "cuMemcpyDtoDAsync", "cuMemcpyDtoDAsync_v2", cuMemcpyDtoDAsync)           \
	X(fill, "cuMemsetD8Async", "cuMemsetD8Async", cuMemsetD8Async)                    \
	X(stream_create, "cuStreamCreate", "cuStreamCreate", cuStreamCreate)              \
	X(stream_sync, "cuStreamSynchronize", "cuStreamSynchronize", cuStreamSynchronize) \
	X(stream_wait, "cuStreamWaitEvent", "cuStreamWaitEvent", cuStreamWaitEvent)       \
	X(event_create, "cuEventCreate", "cuEventCreate", cuEventCreate)                  \
	X(event_record, "cuEventRecord", "cuEventRecord", cuEventRecord)                  \
	X(error_string, "cuGetErrorString", "cuGetErrorString", cuGetErrorString)

static struct {
#define X(field, name, versioned, function) __typeof__(&function) field;
	DRIVER_FUNCTIONS(X)
#undef X
} cu;

/* FNV-1a's, so that the checksum depends on every byte and its place. */
#define FNV_PRIME UINT64_C(1099511628211)

struct options {
	long steps;
	long every;
	long hold_at;
	size_t grow;
	const char *door;
	bool oom;
	bool leak;
	bool print_live;
};

struct loop {
	struct options opt;
	CUstream copy;
	CUstream compute;
	CUevent batch_ready;
	CUdeviceptr weights[N_LAYERS];
	CUdeviceptr activations[N_LAYERS];
	CUdeviceptr *history;
	long n_history;
	unsigned char batch[MARK_BYTES];
	unsigned char result[MARK_BYTES];
	unsigned long long live_bytes;
	uint64_t checksum;
};

static void die(const char *what, CUresult status)
{
	const char *text = NULL;

	fflush(stdout);
	if (cu.error_string)
		cu.error_string(status, &text);
	fprintf(stderr, "%s failed: %s (%d)\n", what, text ? text : "?", (int)status);
	exit(1);
}

#define CHECK(call)                          \
	do {                                 \
		CUresult status_ = (call);   \
		if (status_ != CUDA_SUCCESS) \
			die(#call, status_); \
	} while (0)

static void *open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return library;
}

static void enter_by_link(void)
{
#define X(field, name, versioned, function) cu.field = function;
	DRIVER_FUNCTIONS(X)
#undef X
}

/* POSIX lets dlsym's result be used as a function; ISO C wants the copy through memory. */
static void set_function(void *field, void *function, const char *name)
{
	if (!function) {
		fprintf(stderr, "the driver has no %s\n", name);
		exit(1);
	}
	memcpy(field, &function, sizeof(function));
}

static void enter_by_dlsym(void)
{
	void *library = open_driver();

#define X(field, name, versioned, function) \
	set_function(&cu.field, dlsym(library, versioned), versioned);
	DRIVER_FUNCTIONS(X)
#undef X
}

static void enter_by_proc(void)
{
	CUresult (*get_proc)(
		const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);
	CUdriverProcAddressQueryResult found;
	void *function;

	set_function(&get_proc, dlsym(open_driver(), "cuGetProcAddress_v2"), "cuGetProcAddress_v2");
#define X(field, name, versioned, linked)                                                    \
	function = NULL;                                                                     \
	CHECK(get_proc(name, &function, PROC_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, &found)); \
	set_function(&cu.field, function, name);
	DRIVER_FUNCTIONS(X)
#undef X
}

static void enter(const char *door)
{
	if (strcmp(door, "link") == 0)
		enter_by_link();
	else if (strcmp(door, "dlsym") == 0)
		enter_by_dlsym();
	else if (strcmp(door, "proc") == 0)
		enter_by_proc();
	else {
		fprintf(stderr, "train_driver: no door \"%s\": link, dlsym or proc\n", door);
		exit(2);
	}
}

static CUdeviceptr device_alloc(struct loop *l, size_t bytes)
{
	CUdeviceptr ptr = 0;
	CUresult status = cu.mem_alloc(&ptr, bytes);

	if (status != CUDA_SUCCESS) {
		const char *text = NULL;

		fflush(stdout);
		cu.error_string(status, &text);
		fprintf(stderr, "cuMemAlloc of %zu bytes failed: %s (%d)\n", bytes,
			text ? text : "?", (int)status);
		exit(1);
	}
	l->live_bytes += bytes;
	return ptr;
}

static void device_free(struct loop *l, CUdeviceptr ptr, size_t bytes)
{
	CHECK(cu.mem_free(ptr));
	l->live_bytes -= bytes;
}

static size_t activation_bytes(long step, int layer)
{
	return 400000 + (size_t)(step % 5) * 12345 + (size_t)layer * 77;
}

static void start(struct loop *l)
{
	CUdevice device;
	CUcontext context;

	CHECK(cu.init(0));
	CHECK(cu.device_get(&device, 0));
	CHECK(cu.ctx_retain(&context, device));
	CHECK(cu.ctx_set(context));
	CHECK(cu.stream_create(&l->copy, CU_STREAM_NON_BLOCKING));
	CHECK(cu.stream_create(&l->compute, CU_STREAM_NON_BLOCKING));
	CHECK(cu.event_create(&l->batch_ready, CU_EVENT_DISABLE_TIMING));
	for (int i = 0; i < N_LAYERS; i++) {
		l->weights[i] = device_alloc(l, WEIGHT_BYTES);
		CHECK(cu.fill(l->weights[i], (unsigned char)(0x40 + i), WEIGHT_BYTES, l->compute));
	}
}

static void forward(struct loop *l, long step)
{
	for (size_t i = 0; i < MARK_BYTES; i++)
		l->batch[i] = (unsigned char)((size_t)step * 29 + i * 5);
	l->activations[0] = device_alloc(l, activation_bytes(step, 0));
	CHECK(cu.copy_in(l->activations[0], l->batch, MARK_BYTES, l->copy));
	CHECK(cu.event_record(l->batch_ready, l->copy));
	CHECK(cu.stream_wait(l->compute, l->batch_ready, 0));
	for (int i = 1; i < N_LAYERS; i++) {
		l->activations[i] = device_alloc(l, activation_bytes(step, i));
		CHECK(cu.copy(l->activations[i], l->activations[i - 1], MARK_BYTES, l->compute));
	}
}

static void check_result(struct loop *l, long step)
{
	CHECK(cu.copy_out(l->result, l->activations[N_LAYERS - 1], MARK_BYTES, l->compute));
	CHECK(cu.stream_sync(l->compute));
	if (memcmp(l->result, l->batch, MARK_BYTES) != 0) {
		fprintf(stderr, "the batch of step %ld came back wrong\n", step);
		exit(1);
	}
	for (size_t i = 0; i < MARK_BYTES; i++)
		l->checksum = (l->checksum ^ l->result[i]) * FNV_PRIME;
}

static void backward(struct loop *l, long step)
{
	for (int i = N_LAYERS - 1; i >= 0; i--) {
		CHECK(cu.fill(l->activations[i], 0, MARK_BYTES, l->compute));
		device_free(l, l->activations[i], activation_bytes(step, i));
	}
}

static void remember_loss(struct loop *l)
{
	CUdeviceptr *grown = realloc(l->history, (size_t)(l->n_history + 1) * sizeof(*grown));

	if (!grown) {
		fprintf(stderr, "no host memory\n");
		exit(1);
	}
	l->history = grown;
	l->history[l->n_history++] = device_alloc(l, l->opt.grow);
}

static void print_live_bytes(const struct loop *l)
{
	printf("live bytes: %llu\n", l->live_bytes);
	fflush(stdout);
}

static void train(struct loop *l)
{
	for (long step = 1; l->opt.oom || step <= l->opt.steps; step++) {
		forward(l, step);
		if (step == l->opt.hold_at) {
			print_live_bytes(l);
			for (;;)
				pause();
		}
		check_result(l, step);
		if (l->opt.grow)
			remember_loss(l);
		backward(l, step);
		if (step % l->opt.every == 0)
			printf("step %ld\n", step);
		if (l->opt.print_live)
			print_live_bytes(l);
	}
}

static void finish(struct loop *l)
{
	for (int i = 0; i < N_LAYERS; i++) {
		CHECK(cu.copy_out(l->result, l->weights[i], 1, l->compute));
		CHECK(cu.stream_sync(l->compute));
		if (l->result[0] != 0x40 + i) {
			fprintf(stderr, "the weight of layer %d came back wrong\n", i);
			exit(1);
		}
		device_free(l, l->weights[i], WEIGHT_BYTES);
	}
	if (!l->opt.leak) {
		for (long i = 0; i < l->n_history; i++)
			device_free(l, l->history[i], l->opt.grow);
	}
	CHECK(cu.ctx_sync());
	free(l->history);
}

static long number(const char *text, long lowest, long highest)
{
	char *end = NULL;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < lowest || value > highest) {
		fprintf(stderr, "train_driver: %s is not a number from %ld to %ld\n", text, lowest,
			highest);
		exit(2);
	}
	return value;
}

static void parse_options(int argc, char **argv, struct options *opt)
{
	static const struct option known[] = { { "steps", required_argument, NULL, 's' },
		{ "grow", required_argument, NULL, 'g' }, { "oom", no_argument, NULL, 'o' },
		{ "leak", no_argument, NULL, 'l' }, { "every", required_argument, NULL, 'e' },
		{ "print-live", no_argument, NULL, 'p' },
		{ "hold-at", required_argument, NULL, 'h' },
		{ "door", required_argument, NULL, 'd' }, { NULL, 0, NULL, 0 } };
	int c;

	while ((c = getopt_long(argc, argv, "", known, NULL)) != -1) {
		switch (c) {
		case 's':
			opt->steps = number(optarg, 0, 1000000000);
			break;
		case 'g':
			opt->grow = (size_t)number(optarg, 0, 1L << 40);
			break;
		case 'o':
			opt->oom = true;
			break;
		case 'l':
			opt->leak = true;
			break;
		case 'e':
			opt->every = number(optarg, 1, 1000000000);
			break;
		case 'p':
			opt->print_live = true;
			break;
		case 'h':
			opt->hold_at = number(optarg, 1, 1000000000);
			break;
		case 'd':
			opt->door = optarg;
			break;
		default:
			fputs("usage: train_driver [--steps N] [--grow BYTES_PER_STEP] [--oom] "
			      "[--leak]\n"
			      "                    [--every N] [--print-live] [--hold-at STEP]\n"
			      "                    [--door link|dlsym|proc]\n",
				stderr);
			exit(2);
		}
	}
	if (!opt->grow)
		opt->grow = opt->oom ? OOM_GROWTH : opt->leak ? LEAK_GROWTH : 0;
}

int main(int argc, char **argv)
{
	static struct loop loop = { .opt = { .steps = 100, .every = 10, .door = "link" } };

	parse_options(argc, argv, &loop.opt);
	enter(loop.opt.door);
	start(&loop);
	train(&loop);
	finish(&loop);
	if (loop.opt.print_live)
		print_live_bytes(&loop);
	printf("done: %ld steps, checksum %016llx\n", loop.opt.steps,
		(unsigned long long)loop.checksum);
	return 0;
}
