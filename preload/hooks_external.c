/* SPDX-License-Identifier: Apache-2.0 */
/* Memory not allocated by the driver: registered host memory, and imported external memory. */
#include "preload/shapes.h"

/* Registered host memory is keyed by an address that is not the driver's. */
#define REGISTERED(name)                                  \
	TRACKED(name, p, REGISTERED, size, a->size, a->p, \
		(void *p, size_t size, unsigned int flags), (p, size, flags))

REGISTERED(cuMemHostRegister)
REGISTERED(cuMemHostRegister_v2)

FREED(cuMemHostUnregister, REGISTERED, void *)

/* The exporter accounts for imports.  Buffers and arrays mapped from them have no memory of their own. */
/* clang-format off */
TRACKED(cuImportExternalMemory, memory && desc, EXTERNAL, desc->size, a->desc->size, *a->memory,
	(CUexternalMemory *memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc), (memory, desc))
/* clang-format on */

FREED(cuDestroyExternalMemory, EXTERNAL, CUexternalMemory)
