/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that this process's driver did not allocate: registered host memory, and imported external memory. */
#include "preload/shapes.h"

/* The key of registered host memory is the address that the program passes. */
#define REGISTERED(name)                                  \
	TRACKED(name, p, REGISTERED, size, a->size, a->p, \
		(void *p, size_t size, unsigned int flags), (p, size, flags))

REGISTERED(cuMemHostRegister)
REGISTERED(cuMemHostRegister_v2)

FREED(cuMemHostUnregister, REGISTERED, void *)

/* The exporting API has allocated the memory.  Buffers and arrays mapped from an import take no more. */
/* clang-format off */
TRACKED(cuImportExternalMemory, memory && desc, EXTERNAL, desc->size, a->desc->size, *a->memory,
	(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc), (memory, desc))
/* clang-format on */

FREED(cuDestroyExternalMemory, EXTERNAL, CUexternalMemory)
