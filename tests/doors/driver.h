/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that can only be looked up: it has every function of symbols.def, each a stub, and answers every name
 * that a runtime library asks cuGetProcAddress for.
 *
 * DOORS_DRIVER makes it odd:
 *   trampolines   cuGetProcAddress gives pointers that are not those of the exported symbols
 *   fresh         and others at each call
 *   null          success, and NULL
 *   newer         from CUDA 14 on, functions that nobody knows
 */
#ifndef DOORS_DRIVER_H
#define DOORS_DRIVER_H

#include <stddef.h>

enum {
	NOT_SUPPORTED = 801 /* CUDA_ERROR_NOT_SUPPORTED */
};

struct entry {
	const char *name;
	int since;
	void *function;
};

extern const struct entry entries[];
extern const size_t n_entries;

#endif
