/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with line tables of DWARF 4 (Makefile). */
#include "lines.h"

__attribute__((noinline)) uint64_t lines_here(void)
{
	__asm__ volatile("");
	return (uint64_t)(uintptr_t)__builtin_return_address(0) - 1;
}

__attribute__((noinline)) uint64_t lines_of_old_table(uint32_t *ret_line)
{
	uint64_t here = lines_here();

	*ret_line = __LINE__ - 2;
	return here;
}
