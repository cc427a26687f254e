/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A training loop as a user of the CUDA runtime writes it.  It knows nothing of gpucache.
 *
 * A model of a few layers is trained on two streams: `copy` brings the batch, `compute` runs
 * the layers.  There are no kernels, so that no CUDA compiler is needed: asynchronous copies and
 * fills stand in for them, and let the program check that what it wrote comes back.
 *
 *   per layer, whole run    weight, gradient, momentum, variance
 *   per layer, each step    activation and a workspace of an odd size, freed while work on them
 *                           is still queued, as cudaFree allows
 *   per step, kept for ever the loss and all it drags along: `history`, the bug of this program
 *
 * On stdout: a line each --every steps, with --print-live the bytes asked for and held, and a
 * last line with a checksum.  Exit status 0; 1 when CUDA failed or data came back wrong; 2 usage.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cuda_runtime.h>

#define MAX_LAYERS  64
#define MAX_THREADS 64

/* What --oom and --leak keep of each step unless --grow says otherwise. */
#define OOM_GROWTH  ((size_t)96 << 20)
#define LEAK_GROWTH ((size_t)1 << 20)

/* Bytes of each batch and of each history entry that are written and checked. */
#define MARK_BYTES ((size_t)4096)

/* FNV-1a's, so that the checksum depends on every byte and its place. */
#define FNV_PRIME UINT64_C(1099511628211)

struct options {
	long steps;
	long every;
	long hold_at; /* at this step print the live bytes in the middle of the step, and wait */
	size_t grow;
	int layers;
	int width;
	int batch;
	int threads;
	bool oom;
	bool leak;
	bool print_live;
};

struct layer {
	void *weight;
	void *gradient;
	void *momentum;
	void *variance;
	void *activation;
	void *workspace;
	size_t workspace_bytes;
};

struct trainer {
	const struct options *opt;
	int rank;
	struct layer layers[MAX_LAYERS];
	void **history;
	long n_history;
	unsigned char *batch;  /* pinned, MARK_BYTES */
	unsigned char *result; /* pinned, MARK_BYTES */
	cudaStream_t copy;
	cudaStream_t compute;
	cudaEvent_t batch_ready;
	uint64_t checksum;
};

static atomic_ullong live_bytes;

#define CHECK(call)                           \
	do {                                  \
		cudaError_t status_ = (call); \
		if (status_ != cudaSuccess)   \
			die(#call, status_);  \
	} while (0)

static void die(const char *what, cudaError_t status)
{
	fflush(stdout);
	fprintf(stderr, "%s failed: %s (%d)\n", what, cudaGetErrorString(status), (int)status);
	exit(1);
}

static void *device_alloc(size_t bytes)
{
	void *ptr = NULL;
	cudaError_t status = cudaMalloc(&ptr, bytes);

	if (status != cudaSuccess) {
		fflush(stdout);
		fprintf(stderr, "cudaMalloc of %zu bytes failed: %s (%d)\n", bytes,
			cudaGetErrorString(status), (int)status);
		exit(1);
	}
	atomic_fetch_add(&live_bytes, bytes);
	return ptr;
}

static void device_free(void *ptr, size_t bytes)
{
	CHECK(cudaFree(ptr));
	atomic_fetch_sub(&live_bytes, bytes);
}

static size_t weight_bytes(const struct trainer *t)
{
	return (size_t)t->opt->width * (size_t)t->opt->width * sizeof(float);
}

static size_t activation_bytes(const struct trainer *t)
{
	return (size_t)t->opt->width * (size_t)t->opt->batch * sizeof(float);
}

/* Real workspaces differ from step to step: so many bytes, and never a round number. */
static size_t pick_workspace_bytes(const struct trainer *t, long step, int layer)
{
	return activation_bytes(t) / 2 + (size_t)(step % 7) * 24680 + (size_t)layer * 1234 + 12;
}

static void load_weights(struct trainer *t)
{
	size_t bytes = weight_bytes(t);

	for (int i = 0; i < t->opt->layers; i++) {
		t->layers[i].weight = device_alloc(bytes);
		CHECK(cudaMemsetAsync(t->layers[i].weight, 0x40 + i, bytes, t->compute));
	}
}

static void make_optimizer(struct trainer *t)
{
	size_t bytes = weight_bytes(t);

	for (int i = 0; i < t->opt->layers; i++) {
		t->layers[i].gradient = device_alloc(bytes);
		t->layers[i].momentum = device_alloc(bytes);
		t->layers[i].variance = device_alloc(bytes);
		CHECK(cudaMemsetAsync(t->layers[i].momentum, 0, bytes, t->compute));
		CHECK(cudaMemsetAsync(t->layers[i].variance, 0, bytes, t->compute));
	}
}

static void load_batch(struct trainer *t, long step)
{
	for (size_t i = 0; i < MARK_BYTES; i++)
		t->batch[i] = (unsigned char)((size_t)step * 31 + (size_t)t->rank * 17 + i * 7);
	t->layers[0].activation = device_alloc(activation_bytes(t));
	CHECK(cudaMemcpyAsync(
		t->layers[0].activation, t->batch, MARK_BYTES, cudaMemcpyHostToDevice, t->copy));
	CHECK(cudaEventRecord(t->batch_ready, t->copy));
	CHECK(cudaStreamWaitEvent(t->compute, t->batch_ready, 0));
}

static void layer_forward(struct trainer *t, long step, int i)
{
	struct layer *layer = &t->layers[i];

	layer->workspace_bytes = pick_workspace_bytes(t, step, i);
	layer->workspace = device_alloc(layer->workspace_bytes);
	CHECK(cudaMemsetAsync(layer->workspace, 0xee, MARK_BYTES, t->compute));
	if (i == 0)
		return;
	layer->activation = device_alloc(activation_bytes(t));
	CHECK(cudaMemcpyAsync(layer->activation, t->layers[i - 1].activation, MARK_BYTES,
		cudaMemcpyDeviceToDevice, t->compute));
}

static void forward(struct trainer *t, long step)
{
	for (int i = 0; i < t->opt->layers; i++)
		layer_forward(t, step, i);
}

/* The mistake: the loss is kept as a tensor, and with it everything it was computed from. */
static void remember_loss(struct trainer *t, long step)
{
	void **grown = realloc(t->history, (size_t)(t->n_history + 1) * sizeof(*grown));

	if (!grown) {
		fprintf(stderr, "no host memory\n");
		exit(1);
	}
	t->history = grown;
	t->history[t->n_history] = device_alloc(t->opt->grow);
	CHECK(cudaMemsetAsync(t->history[t->n_history], (int)(step & 0xff),
		t->opt->grow < MARK_BYTES ? t->opt->grow : MARK_BYTES, t->compute));
	t->n_history++;
}

/* Freed while `compute` still works on it: cudaFree waits, or whoever stands in for it must. */
static void layer_backward(struct trainer *t, long step, int i)
{
	struct layer *layer = &t->layers[i];

	CHECK(cudaMemsetAsync(layer->gradient, (int)(step & 0x7f), weight_bytes(t), t->compute));
	device_free(layer->workspace, layer->workspace_bytes);
	device_free(layer->activation, activation_bytes(t));
	layer->workspace = NULL;
	layer->activation = NULL;
}

static void backward(struct trainer *t, long step)
{
	for (int i = t->opt->layers - 1; i >= 0; i--)
		layer_backward(t, step, i);
}

static void optimizer_step(struct trainer *t)
{
	for (int i = 0; i < t->opt->layers; i++) {
		CHECK(cudaMemcpyAsync(t->layers[i].momentum, t->layers[i].gradient, weight_bytes(t),
			cudaMemcpyDeviceToDevice, t->compute));
	}
}

static void fail_data(const char *what, long where)
{
	fflush(stdout);
	fprintf(stderr, "%s %ld came back wrong\n", what, where);
	exit(1);
}

/* What went into layer 0 went through every layer: it must still be what was sent. */
static void check_result(struct trainer *t, long step)
{
	CHECK(cudaMemcpyAsync(t->result, t->layers[t->opt->layers - 1].activation, MARK_BYTES,
		cudaMemcpyDeviceToHost, t->compute));
	CHECK(cudaStreamSynchronize(t->compute));
	if (memcmp(t->result, t->batch, MARK_BYTES) != 0)
		fail_data("the batch of step", step);
	for (size_t i = 0; i < MARK_BYTES; i++)
		t->checksum = (t->checksum ^ t->result[i]) * FNV_PRIME;
}

static void print_live_bytes(void)
{
	printf("live bytes: %llu\n", (unsigned long long)atomic_load(&live_bytes));
	fflush(stdout);
}

static void hold(void)
{
	print_live_bytes();
	for (;;)
		pause();
}

static void train_step(struct trainer *t, long step)
{
	load_batch(t, step);
	forward(t, step);
	if (step == t->opt->hold_at)
		hold();
	check_result(t, step);
	if (t->opt->grow)
		remember_loss(t, step);
	backward(t, step);
	optimizer_step(t);
}

/* Memory of a whole run must hold what was put there, whatever was allocated and freed since. */
static void check_byte(struct trainer *t, const char *what, long where, void *ptr, int expected)
{
	CHECK(cudaMemcpy(t->result, ptr, 1, cudaMemcpyDeviceToHost));
	if (t->result[0] != (unsigned char)expected)
		fail_data(what, where);
}

static void check_all(struct trainer *t)
{
	CHECK(cudaStreamSynchronize(t->compute));
	for (int i = 0; i < t->opt->layers; i++)
		check_byte(t, "the weight of layer", i, t->layers[i].weight, 0x40 + i);
	for (long i = 0; i < t->n_history; i++)
		check_byte(t, "history entry", i, t->history[i], (int)((i + 1) & 0xff));
}

static void start(struct trainer *t)
{
	CHECK(cudaStreamCreateWithFlags(&t->copy, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&t->compute, cudaStreamNonBlocking));
	CHECK(cudaEventCreateWithFlags(&t->batch_ready, cudaEventDisableTiming));
	CHECK(cudaMallocHost((void **)&t->batch, MARK_BYTES));
	CHECK(cudaMallocHost((void **)&t->result, MARK_BYTES));
	load_weights(t);
	make_optimizer(t);
}

static void finish(struct trainer *t)
{
	size_t bytes = weight_bytes(t);

	for (int i = 0; i < t->opt->layers; i++) {
		device_free(t->layers[i].weight, bytes);
		device_free(t->layers[i].gradient, bytes);
		device_free(t->layers[i].momentum, bytes);
		device_free(t->layers[i].variance, bytes);
	}
	if (!t->opt->leak) {
		for (long i = 0; i < t->n_history; i++)
			device_free(t->history[i], t->opt->grow);
	}
	CHECK(cudaFreeHost(t->batch));
	CHECK(cudaFreeHost(t->result));
	CHECK(cudaEventDestroy(t->batch_ready));
	CHECK(cudaStreamDestroy(t->copy));
	CHECK(cudaStreamDestroy(t->compute));
	free(t->history);
}

static void *run_trainer(void *arg)
{
	struct trainer *t = arg;
	bool talks = t->opt->threads == 1;

	start(t);
	for (long step = 1; t->opt->oom || step <= t->opt->steps; step++) {
		train_step(t, step);
		if (talks && step % t->opt->every == 0) {
			printf("step %ld: loss %.4f\n", step, 4.0 / (double)(step + 1));
			fflush(stdout);
		}
		if (talks && t->opt->print_live)
			print_live_bytes();
	}
	check_all(t);
	finish(t);
	return NULL;
}

static void usage(FILE *out)
{
	fputs("usage: train [--steps N] [--grow BYTES_PER_STEP] [--oom] [--leak] [--threads N]\n"
	      "             [--layers N] [--width N] [--batch N] [--every N] [--print-live]\n"
	      "             [--hold-at STEP]\n",
		out);
}

static long number(const char *text, long lowest, long highest)
{
	char *end = NULL;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < lowest || value > highest) {
		fprintf(stderr, "train: %s is not a number from %ld to %ld\n", text, lowest,
			highest);
		exit(2);
	}
	return value;
}

static void parse_options(int argc, char **argv, struct options *opt)
{
	static const struct option known[] = { { "steps", required_argument, NULL, 's' },
		{ "grow", required_argument, NULL, 'g' }, { "oom", no_argument, NULL, 'o' },
		{ "leak", no_argument, NULL, 'l' }, { "threads", required_argument, NULL, 't' },
		{ "layers", required_argument, NULL, 'n' },
		{ "width", required_argument, NULL, 'w' },
		{ "batch", required_argument, NULL, 'b' },
		{ "every", required_argument, NULL, 'e' }, { "print-live", no_argument, NULL, 'p' },
		{ "hold-at", required_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
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
		case 't':
			opt->threads = (int)number(optarg, 1, MAX_THREADS);
			break;
		case 'n':
			opt->layers = (int)number(optarg, 1, MAX_LAYERS);
			break;
		case 'w':
			opt->width = (int)number(optarg, 64, 65536);
			break;
		case 'b':
			opt->batch = (int)number(optarg, 64, 65536);
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
		default:
			usage(stderr);
			exit(2);
		}
	}
	if (optind != argc) {
		usage(stderr);
		exit(2);
	}
	if (!opt->grow)
		opt->grow = opt->oom ? OOM_GROWTH : opt->leak ? LEAK_GROWTH : 0;
}

int main(int argc, char **argv)
{
	static struct trainer trainers[MAX_THREADS];
	struct options opt = {
		.steps = 100, .every = 10, .layers = 8, .width = 512, .batch = 256, .threads = 1
	};
	pthread_t threads[MAX_THREADS];
	uint64_t checksum = 0;

	parse_options(argc, argv, &opt);
	CHECK(cudaSetDevice(0));
	for (int i = 0; i < opt.threads; i++) {
		trainers[i].opt = &opt;
		trainers[i].rank = i;
	}
	/* One trainer runs on the main thread, so that a debugger, or a recorder, sees main in its stack. */
	for (int i = 1; i < opt.threads; i++) {
		if (pthread_create(&threads[i], NULL, run_trainer, &trainers[i]) != 0) {
			fprintf(stderr, "no thread\n");
			exit(1);
		}
	}
	run_trainer(&trainers[0]);
	for (int i = 1; i < opt.threads; i++)
		pthread_join(threads[i], NULL);
	CHECK(cudaDeviceSynchronize());
	for (int i = 0; i < opt.threads; i++)
		checksum ^= trainers[i].checksum;
	if (opt.print_live)
		print_live_bytes();
	printf("done: %ld steps, checksum %016llx\n", opt.steps, (unsigned long long)checksum);
	return 0;
}
