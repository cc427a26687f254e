/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the rows of our own ABI header, src/driver/cuda_*.def, with the toolkit's <cuda.h>.
 *
 * It only has to compile: gcc -fsyntax-only -Isrc -I$(CUDA_HOME)/include.
 */
#include <stddef.h>

#include <cuda.h>

#if CUDA_VERSION < 13000
#error "the rows are of CUDA 13.0; an older cuda.h lacks some of its names"
#endif

#define VALUE(name, number)  _Static_assert((long)(name) == (number), #name);
#define RESULT(name, number) VALUE(name, number)
#define ENUM(type, values)   values
#define FLAGS(tag, values)   values
#define SIZE(type, bytes)    _Static_assert(sizeof(type) == (bytes), #type);
#define OFFSET(type, member, bytes) \
	_Static_assert(offsetof(type, member) == (bytes), #type "." #member);
#include "driver/cuda_layouts.def"
#include "driver/cuda_results.def"
#include "driver/cuda_values.def"
