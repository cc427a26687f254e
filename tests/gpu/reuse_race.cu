/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frees memory under a running kernel: an unsafe cache fails this program.
 *
 * Stream 1 fills a block slowly; the block is freed at once; the next owner fills a block of the same size on stream 2.
 * cudaFree guarantees that the first kernel has ended by then.  A cache that reuses the block too early lets the slow
 * kernel overwrite the new owner's data.
 *
 *     stream 1   [ slow fill with 1 ...................... ]
 *     host        free  malloc
 *     stream 2               [ fill with 2 ] [ check ]      a 1 found here is the bug
 */
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define N_WORDS  (1u << 20)
#define N_ROUNDS 200

/* Long enough that host and second stream finish before the first kernel writes its last word. */
#define SPIN_CLOCKS 2000000ll

#define CHECK(call)                                                                                \
	do {                                                                                       \
		cudaError_t status_ = (call);                                                      \
		if (status_ != cudaSuccess) {                                                      \
			fprintf(stderr, "%s failed: %s (%d)\n", #call, cudaGetErrorString(status_), \
				(int)status_);                                                     \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

__global__ void fill(unsigned *words, unsigned value, long long spin_clocks)
{
	long long start = clock64();

	while (clock64() - start < spin_clocks)
		;
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < N_WORDS; i += gridDim.x * blockDim.x)
		words[i] = value;
}

__global__ void count_wrong(const unsigned *words, unsigned value, unsigned *wrong)
{
	for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < N_WORDS; i += gridDim.x * blockDim.x) {
		if (words[i] != value)
			atomicAdd(wrong, 1);
	}
}

int main()
{
	cudaStream_t slow, fast;
	unsigned *wrong;
	unsigned n_same = 0;
	unsigned total = 0;

	CHECK(cudaStreamCreateWithFlags(&slow, cudaStreamNonBlocking));
	CHECK(cudaStreamCreateWithFlags(&fast, cudaStreamNonBlocking));
	CHECK(cudaMalloc(&wrong, sizeof(*wrong)));
	CHECK(cudaMemset(wrong, 0, sizeof(*wrong)));
	CHECK(cudaDeviceSynchronize());
	for (int round = 0; round < N_ROUNDS; round++) {
		unsigned *first, *second;

		CHECK(cudaMalloc(&first, N_WORDS * sizeof(*first)));
		fill<<<16, 256, 0, slow>>>(first, 1, SPIN_CLOCKS);
		CHECK(cudaFree(first));
		CHECK(cudaMalloc(&second, N_WORDS * sizeof(*second)));
		n_same += first == second;
		fill<<<64, 256, 0, fast>>>(second, 2, 0);
		CHECK(cudaStreamSynchronize(slow));
		count_wrong<<<64, 256, 0, fast>>>(second, 2, wrong);
		CHECK(cudaStreamSynchronize(fast));
		CHECK(cudaFree(second));
	}
	CHECK(cudaMemcpy(&total, wrong, sizeof(total), cudaMemcpyDeviceToHost));
	/* How often the address came back goes to stderr: it may differ between runs. */
	fprintf(stderr, "the same address came back %u times of %d\n", n_same, N_ROUNDS);
	printf("wrong words: %u\n", total);
	return total ? 1 : 0;
}
