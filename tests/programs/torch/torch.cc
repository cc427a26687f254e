/* SPDX-License-Identifier: Apache-2.0 */
/* What calls the allocator. */
#include <cstddef>

extern "C" void *torch_raw_alloc(void *(*alloc)(size_t, int, void *), size_t size)
{
	return alloc(size, 0, nullptr);
}
