/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver for lookups only: every function of symbols.def is a stub, and cuGetProcAddress finds every name that a
 * runtime library requests.
 *
 * DOORS_DRIVER makes cuGetProcAddress odd:
 *   trampolines   its pointers differ from the exported symbols
 *   fresh         and differ at each call
 *   null          it returns success, and NULL
 *   newer         from CUDA 14 on, it returns unknown functions
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
