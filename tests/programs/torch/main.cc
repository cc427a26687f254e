/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch BYTES [torch|own]: asks gpucache_torch_malloc, as PyTorch does or from the program itself, and says what comes.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

#include "c10.hh"

extern "C" void *torch_raw_alloc(void *(*alloc)(size_t, int, void *), size_t size);
extern "C" int cudaSetDevice(int device);

int main(int argc, char **argv)
{
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
