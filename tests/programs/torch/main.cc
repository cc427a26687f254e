/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch BYTES [torch|own]: asks gpucache_torch_malloc, as PyTorch does or from the program itself, and says what comes.
 * torch tensors N: makes N tensors with PyTorch's own allocator, frees some, fails once, and says its sums.
 * torch streams N: makes N tensors on the legacy stream and on each of two others, and says their handles.
 * torch pages BYTES [alone]: makes a tensor, or none, then asks for BYTES as expandable segments do, and aborts if it fails.
 * torch pairs N: what a free and a malloc of a tensor of 512 bytes take beside nine others, the least of N times.
 */
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "c10.hh"
#include "cache.hh"

extern "C" void *torch_raw_alloc(void *(*alloc)(size_t, int, void *), size_t size);
extern "C" int cudaSetDevice(int device);
extern "C" int cudaStreamCreate(void **stream);

static int make_tensors(int n)
{
	for (int i = 1; i <= n; i++) {
		size_t size = (size_t)i * 100000;
		void *tensor = c10_allocate(size);

		if (tensor && i % 3 == 0)
			c10_free(tensor, size);
	}
	(void)!c10_allocate((size_t)1 << 40);
	std::printf("%llu %llu %llu %llu %llu\n", (unsigned long long)c10_sums.allocated,
		(unsigned long long)c10_sums.reserved, (unsigned long long)c10_sums.n_malloc,
		(unsigned long long)c10_sums.n_free, (unsigned long long)c10_sums.n_failed);
	std::printf("%llu\n", (unsigned long long)c10_reports());
	return 0;
}

static int make_tensors_on_streams(int n)
{
	for (int s = 0; s < 3; s++) {
		if (s && cudaStreamCreate(&c10_stream))
			return 77;
		for (int i = 0; i < n; i++)
			(void)!c10_allocate((size_t)(s + 1) << 20);
		std::printf("%p\n", c10_stream);
	}
	std::fflush(stdout);
	std::_Exit(0);
}

static int make_pages(size_t size, bool is_alone)
{
	if (!is_alone && !c10_allocate(1 << 20))
		return 77;
	if (!c10_expand(size))
		std::abort();
	return 0;
}

/* Times short enough that most of them are not interrupted. */
static int time_pairs(int n)
{
	const int per_time = 500;
	double least = 1e9;
	void *tensors[10];

	for (void *&tensor : tensors)
		tensor = c10_allocate(512);
	for (int i = 0; i < n; i++) {
		auto start = std::chrono::steady_clock::now();

		for (int k = 0; k < per_time; k++)
			c10_renew(tensors[k % 10], 512);
		std::chrono::duration<double, std::nano> taken =
			std::chrono::steady_clock::now() - start;
		least = std::min(least, taken.count() / per_time);
	}
	std::printf("%.0f ns a pair\n", least);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 2 && std::strcmp(argv[1], "tensors") == 0)
		return cudaSetDevice(0) ? 77 : make_tensors(std::atoi(argv[2]));
	if (argc > 2 && std::strcmp(argv[1], "streams") == 0)
		return cudaSetDevice(0) ? 77 : make_tensors_on_streams(std::atoi(argv[2]));
	if (argc > 2 && std::strcmp(argv[1], "pairs") == 0)
		return cudaSetDevice(0) ? 77 : time_pairs(std::atoi(argv[2]));
	if (argc > 2 && std::strcmp(argv[1], "pages") == 0)
		return cudaSetDevice(0) ? 77
					: make_pages(std::strtoull(argv[2], nullptr, 0), argc > 3);
	size_t size = std::strtoull(argc > 1 ? argv[1] : "1024", nullptr, 0);
	bool is_own = argc > 2 && std::strcmp(argv[2], "own") == 0;
	auto alloc = reinterpret_cast<void *(*)(size_t, int, void *)>(
		dlsym(RTLD_DEFAULT, "gpucache_torch_malloc"));

	if (!alloc || cudaSetDevice(0))
		return 77;
	try {
		void *ptr = is_own ? alloc(size, 0, nullptr) : torch_raw_alloc(alloc, size);

		std::printf("%s\n", ptr ? "memory" : "NULL");
	} catch (const c10::OutOfMemoryError &error) {
		std::printf("OutOfMemoryError %s\n", error.what());
	} catch (const c10::Error &error) {
		std::printf("Error %s\n", error.what());
	}
	return 0;
}
