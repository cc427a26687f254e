/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that uses gpucache.h: every example of the header, and its guarantees.
 *
 *   api          prints the results; on a slow device (GPUSIM=copy_us:50000) also whether freed memory is reused at
 *   once
 *                by its own stream, and by no other
 *   api early    only calls before CUDA starts
 *   api off      only what works with gpucache disabled (GPUCACHE=0)
 *
 * Compiled as C99 and as C++.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda_runtime.h>

#include "gpucache.h"

#define BLOCK_BYTES ((size_t)3 << 20)

static cudaStream_t stream;
static cudaStream_t other_stream;

static void fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: %s\n", file, line, what);
	exit(1);
}

#define CHECK(condition) ((condition) ? (void)0 : fail(__FILE__, __LINE__, #condition))
#define ok(call)         CHECK((int)(call) == 0)

/* What the program can do without. */
struct caches {
	void *memory;
	int n_calls;
	int is_asking_itself;
};

static int drop_caches(void *arg, size_t wanted, int device)
{
	struct caches *caches = (struct caches *)arg;
	void *more = NULL;

	CHECK(wanted > 0 && device == 0);
	caches->n_calls++;
	/* A request of its own that fails does not call it again. */
	if (caches->is_asking_itself)
		CHECK(gpucache_malloc(&more, wanted) == GPUCACHE_ERROR_OUT_OF_MEMORY);
	if (!caches->memory)
		return 0;
	ok(gpucache_free(caches->memory));
	caches->memory = NULL;
	return 1;
}

static struct gpucache_stats look(void)
{
	struct gpucache_stats stats;

	stats.size = sizeof stats;
	ok(gpucache_stats(-1, &stats));
	CHECK(stats.size == sizeof stats);
	CHECK(stats.live_bytes + stats.pending_bytes + stats.cached_bytes == stats.reserved_bytes);
	return stats;
}

static void before_cuda(void)
{
	void *memory = NULL;
	struct gpucache_stats stats;

	memset(&stats, 0, sizeof stats);
	stats.size = sizeof stats;
	CHECK(gpucache_malloc(&memory, 512) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_malloc_on(&memory, 512, NULL) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_free(&memory) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_record_use(&memory, NULL) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_trim(1, NULL) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_stats(-1, &stats) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_snapshot(NULL, 0) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_set_limit(-1, 0) == GPUCACHE_ERROR_NOT_INITIALIZED);
	CHECK(gpucache_torch_malloc(512, 0, NULL) == NULL);
	CHECK(memory == NULL);
	ok(gpucache_free(NULL));
	gpucache_set_oom_handler(NULL, NULL);
	ok(gpucache_tag_push("before CUDA"));
	ok(gpucache_tag_pop());
}

static void tell_errors(void)
{
	void *memory = NULL;
	int error = gpucache_malloc(&memory, 0);
	printf("%s\n", gpucache_error_text(error));
	CHECK(error == GPUCACHE_ERROR_INVALID_VALUE && memory == NULL);
	CHECK(strcmp(gpucache_error_text(GPUCACHE_ERROR_OUT_OF_MEMORY),
		      "CUDA_ERROR_OUT_OF_MEMORY") == 0);
	CHECK(strcmp(gpucache_error_text(0), "CUDA_SUCCESS") == 0);
	CHECK(gpucache_error_text(-77) != NULL);
	CHECK(gpucache_malloc(NULL, 512) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_malloc_on(NULL, 512, stream) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_stats(0, NULL) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_record_use(NULL, stream) == GPUCACHE_ERROR_INVALID_VALUE);
}

static void use_any_stream(void)
{
	void *buffer = NULL;
	ok(gpucache_malloc(&buffer, 1 << 20));
	ok(gpucache_free(buffer));
	CHECK(gpucache_free(buffer) == GPUCACHE_ERROR_INVALID_VALUE);
	/* Both doors lead to the same cache. */
	ok(gpucache_malloc(&buffer, BLOCK_BYTES));
	CHECK(gpucache_free((char *)buffer + 512) == GPUCACHE_ERROR_INVALID_VALUE);
	ok(cudaFree(buffer));
	ok(cudaMalloc(&buffer, BLOCK_BYTES));
	ok(gpucache_free_on(buffer, stream));
}

static void use_one_stream(void)
{
	void *scratch = NULL;
	ok(gpucache_malloc_on(&scratch, 1 << 20, stream));
	ok(cudaMemsetAsync(scratch, 0, 1 << 20, stream));
	ok(gpucache_free_on(scratch, stream));
	CHECK(gpucache_free_on(scratch, stream) == GPUCACHE_ERROR_INVALID_VALUE);
	ok(cudaDeviceSynchronize());
}

static void use_two_streams(void)
{
	void *shared = NULL;
	ok(gpucache_malloc_on(&shared, 1 << 20, stream));
	ok(gpucache_record_use(shared, other_stream));
	ok(cudaMemsetAsync(shared, 0, 1 << 20, other_stream));
	ok(gpucache_free_on(shared, stream));
	CHECK(gpucache_record_use(shared, stream) == GPUCACHE_ERROR_INVALID_VALUE);
	ok(cudaDeviceSynchronize());
}

/* Returns 1 if `user` was busy with the block until after both requests. */
static int reuse_while_busy(cudaStream_t user, int is_shared, void **ret_freed, void **ret_next)
{
	ok(cudaDeviceSynchronize());
	ok(gpucache_malloc_on(ret_freed, BLOCK_BYTES, stream));
	if (is_shared)
		ok(gpucache_record_use(*ret_freed, user));
	ok(cudaMemsetAsync(*ret_freed, 1, BLOCK_BYTES, user));
	ok(gpucache_free_on(*ret_freed, stream));
	ok(gpucache_malloc_on(ret_next, BLOCK_BYTES, stream));
	return cudaStreamQuery(user) == cudaErrorNotReady;
}

static void reuse_in_order(void)
{
	void *freed = NULL;
	void *next = NULL;
	void *others = NULL;

	if (reuse_while_busy(stream, 0, &freed, &next)) {
		CHECK(next == freed);
		printf("its own stream gets busy memory at once\n");
	}
	ok(gpucache_free_on(next, stream));
	ok(gpucache_malloc_on(&others, BLOCK_BYTES, other_stream));
	if (cudaStreamQuery(stream) == cudaErrorNotReady) {
		CHECK(others != next);
		printf("another stream does not get it\n");
	}
	ok(gpucache_free_on(others, other_stream));

	if (reuse_while_busy(other_stream, 1, &freed, &next)) {
		CHECK(next != freed);
		printf("nobody gets what two streams use\n");
	}
	ok(gpucache_free_on(next, stream));
}

/* The driver may give the handle of a destroyed stream to the next one, while the old one's work still runs. */
static void reuse_a_handle(void)
{
	void *freed = NULL;
	void *next = NULL;
	cudaStream_t first;
	cudaStream_t second;

	ok(cudaDeviceSynchronize());
	ok(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
	ok(gpucache_malloc_on(&freed, BLOCK_BYTES, first));
	ok(cudaMemsetAsync(freed, 1, BLOCK_BYTES, first));
	ok(gpucache_free_on(freed, first));
	ok(cudaStreamDestroy(first));
	ok(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking));
	ok(gpucache_malloc_on(&next, BLOCK_BYTES, second));
	ok(cudaMemsetAsync(next, 2, BLOCK_BYTES, second));
	ok(gpucache_free_on(next, second));
	ok(cudaStreamDestroy(second));
	printf("the handle came again: %s\n", first == second ? "yes" : "no");
}

static void give_back(void)
{
	struct gpucache_stats before = look();

	size_t gone = 0;
	ok(cudaDeviceSynchronize());
	ok(gpucache_trim(SIZE_MAX, &gone));
	printf("%zu bytes went back to the driver\n", gone);
	CHECK(gone > 0 && gone == before.reserved_bytes - look().reserved_bytes);
	ok(gpucache_trim(SIZE_MAX, NULL));
}

static void read_numbers(void)
{
	struct gpucache_stats stats;
	stats.size = sizeof stats;
	ok(gpucache_stats(-1, &stats));
	printf("%llu bytes live\n", (unsigned long long)stats.live_bytes);
	CHECK(stats.n_malloc > 0 && stats.n_malloc);
	CHECK(gpucache_stats(99, &stats) == GPUCACHE_ERROR_INVALID_DEVICE);
	CHECK(gpucache_stats(-2, &stats) == GPUCACHE_ERROR_INVALID_DEVICE);
	stats.size = 8;
	CHECK(gpucache_stats(0, &stats) == GPUCACHE_ERROR_INVALID_VALUE);
}

static void start_peaks_anew(void)
{
	struct gpucache_stats before = look();
	void *spike = NULL;

	ok(gpucache_reset_peaks(-1));
	CHECK(look().peak_live_bytes == before.live_bytes &&
		look().peak_reserved_bytes == before.reserved_bytes);
	ok(gpucache_malloc(&spike, BLOCK_BYTES));
	ok(gpucache_free(spike));
	CHECK(look().peak_live_bytes == before.live_bytes + BLOCK_BYTES);
	CHECK(look().peak_requested_bytes == before.requested_bytes + BLOCK_BYTES);
	CHECK(gpucache_reset_peaks(99) == GPUCACHE_ERROR_INVALID_DEVICE);
}

static void read_numbers_of_a_stream(void)
{
	void *mine = NULL;

	ok(gpucache_malloc_on(&mine, BLOCK_BYTES, stream));
	struct gpucache_part_stats part;
	part.size = sizeof part;
	ok(gpucache_stream_stats(-1, stream, &part));
	printf("%llu bytes of this stream\n", (unsigned long long)part.live_bytes);
	CHECK(part.live_bytes == BLOCK_BYTES && part.n_blocks == 1);
	ok(gpucache_stream_stats(-1, other_stream, &part));
	CHECK(part.live_bytes == 0 && part.n_blocks == 0);
	ok(gpucache_free_on(mine, stream));
	ok(gpucache_stream_stats(0, stream, &part));
	CHECK(part.n_blocks == 0);
	CHECK(gpucache_stream_stats(99, stream, &part) == GPUCACHE_ERROR_INVALID_DEVICE);
	CHECK(gpucache_stream_stats(-1, stream, NULL) == GPUCACHE_ERROR_INVALID_VALUE);
	part.size = 8;
	CHECK(gpucache_stream_stats(-1, stream, &part) == GPUCACHE_ERROR_INVALID_VALUE);
}

static void read_numbers_of_a_range(void)
{
	void *outer = NULL;
	void *inner = NULL;

	ok(gpucache_tag_push("forward"));
	ok(gpucache_malloc(&outer, BLOCK_BYTES));
	ok(gpucache_tag_push("attention"));
	ok(cudaMalloc(&inner, 2 * BLOCK_BYTES));
	ok(gpucache_tag_pop());
	ok(gpucache_tag_pop());
	struct gpucache_part_stats part;
	part.size = sizeof part;
	ok(gpucache_tag_stats(-1, "forward", &part));
	printf("%llu bytes of forward\n", (unsigned long long)part.live_bytes);
	CHECK(part.live_bytes == 3 * BLOCK_BYTES && part.n_blocks == 2);
	ok(gpucache_tag_stats(-1, "attention", &part));
	CHECK(part.live_bytes == 2 * BLOCK_BYTES && part.n_blocks == 1);
	ok(gpucache_tag_stats(-1, "backward", &part));
	CHECK(part.n_blocks == 0);
	ok(gpucache_free(outer));
	ok(cudaFree(inner));
	ok(gpucache_tag_stats(-1, "forward", &part));
	CHECK(part.n_blocks == 0);
	CHECK(gpucache_tag_stats(-1, "", &part) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_tag_stats(-1, NULL, &part) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_tag_stats(-1, "forward", NULL) == GPUCACHE_ERROR_INVALID_VALUE);
}

static void find_recording(void)
{
	char path[4096];
	ok(gpucache_snapshot(path, sizeof path));
	printf("gpumem-report summary %s\n", path);
	CHECK(path[0] != '\0');
	CHECK(gpucache_snapshot(path, 1) == GPUCACHE_ERROR_INVALID_VALUE);
	ok(gpucache_snapshot(NULL, 0));
}

static void run_out_of_memory(void)
{
	struct caches caches = { NULL, 0, 0 };
	void *big = NULL;

	ok(gpucache_set_limit(-1, (uint64_t)2 << 30));
	CHECK(look().limit_bytes == (uint64_t)2 << 30);
	CHECK(gpucache_set_limit(99, 0) == GPUCACHE_ERROR_INVALID_DEVICE);
	gpucache_set_oom_handler(drop_caches, &caches);
	ok(gpucache_malloc(&caches.memory, (size_t)1536 << 20));
	ok(gpucache_malloc(&big, (size_t)1 << 30));
	CHECK(caches.n_calls == 1 && caches.memory == NULL);
	caches.is_asking_itself = 1;
	CHECK(gpucache_malloc(&caches.memory, (size_t)1536 << 20) == GPUCACHE_ERROR_OUT_OF_MEMORY);
	CHECK(caches.n_calls == 2 && look().n_rescued == 1);
	gpucache_set_oom_handler(NULL, NULL);
	CHECK(gpucache_malloc(&caches.memory, (size_t)1536 << 20) == GPUCACHE_ERROR_OUT_OF_MEMORY);
	CHECK(caches.n_calls == 2);
	/* Idle memory above a new limit goes at once; none at all ends it. */
	ok(gpucache_free(big));
	ok(cudaDeviceSynchronize());
	ok(gpucache_set_limit(0, (uint64_t)512 << 20));
	CHECK(look().reserved_bytes <= (uint64_t)512 << 20);
	ok(gpucache_set_limit(0, 0));
	ok(gpucache_malloc(&big, (size_t)1536 << 20));
	ok(gpucache_free(big));
}

static void name_ranges(void)
{
	char name[] = "step 1000";

	void *activations = NULL;
	ok(gpucache_tag_push("forward"));
	ok(cudaMalloc(&activations, 1 << 20));
	ok(gpucache_tag_pop());
	CHECK(gpucache_tag_pop() == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_tag_push(NULL) == GPUCACHE_ERROR_INVALID_VALUE);
	CHECK(gpucache_tag_push("") == GPUCACHE_ERROR_INVALID_VALUE);
	/* Deeper and more than any bound: as many ends as begins. */
	for (int i = 0; i < 5000; i++) {
		name[5] = (char)('0' + i / 1000);
		name[7] = (char)('0' + i / 10 % 10);
		ok(gpucache_tag_push(name));
	}
	for (int i = 0; i < 5000; i++)
		ok(gpucache_tag_pop());
	CHECK(gpucache_tag_pop() == GPUCACHE_ERROR_INVALID_VALUE);
	ok(cudaFree(activations));
}

static void call_as_pytorch(void)
{
	size_t size = 0;
	void *base;

	void *tensor = gpucache_torch_malloc(1 << 20, 0, stream);
	gpucache_torch_record_stream(tensor, other_stream);
	gpucache_torch_free(tensor, 1 << 20, 0, stream);
	CHECK(tensor != NULL);
	CHECK(gpucache_torch_malloc(0, 0, stream) == NULL);
	CHECK(gpucache_torch_malloc(1 << 20, 99, stream) == NULL);
	gpucache_torch_free(NULL, 0, 0, stream);
	tensor = gpucache_torch_malloc(1 << 20, 0, stream);
	base = gpucache_torch_base_alloc(tensor, &size);
	CHECK((char *)base <= (char *)tensor && (char *)tensor + (1 << 20) <= (char *)base + size);
	gpucache_torch_memory_fraction(0.5, 0);
	CHECK(look().limit_bytes > 0);
	gpucache_torch_memory_fraction(1.0, 0);
	CHECK(look().limit_bytes == 0);
	gpucache_torch_free(tensor, 1 << 20, 0, stream);
	ok(cudaDeviceSynchronize());
	gpucache_torch_reset();
	CHECK(look().reserved_bytes == 0);
}

static void work_switched_off(void)
{
	void *memory = NULL;

	ok(gpucache_malloc_on(&memory, BLOCK_BYTES, NULL));
	ok(gpucache_record_use(memory, NULL));
	ok(gpucache_free_on(memory, NULL));
	CHECK(gpucache_trim(1, NULL) == GPUCACHE_ERROR_NOT_SUPPORTED);
	CHECK(gpucache_snapshot(NULL, 0) == GPUCACHE_ERROR_NOT_SUPPORTED);
	memory = gpucache_torch_malloc(BLOCK_BYTES, 0, NULL);
	CHECK(memory != NULL);
	gpucache_torch_free(memory, BLOCK_BYTES, 0, NULL);
	ok(gpucache_tag_push("off"));
	ok(gpucache_tag_pop());
}

int main(int argc, char **argv)
{
	before_cuda();
	if (argc > 1 && strcmp(argv[1], "early") == 0)
		return 0;
	ok(cudaFree(NULL));
	if (argc > 1 && strcmp(argv[1], "off") == 0) {
		work_switched_off();
		return 0;
	}
	ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
	ok(cudaStreamCreateWithFlags(&other_stream, cudaStreamNonBlocking));
	tell_errors();
	use_any_stream();
	use_one_stream();
	use_two_streams();
	reuse_in_order();
	reuse_a_handle();
	give_back();
	read_numbers();
	start_peaks_anew();
	read_numbers_of_a_stream();
	read_numbers_of_a_range();
	find_recording();
	run_out_of_memory();
	name_ranges();
	call_as_pytorch();
	printf("done\n");
	return 0;
}
