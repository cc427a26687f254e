/* SPDX-License-Identifier: Apache-2.0 */
/*
 * FNV-1a, for keys that are texts or small structures.
 *
 *      gpc_hash_bytes(GPC_HASH_START, name, size)      of one key
 *      gpc_hash_bytes(hash, more, size)                of a key that goes on
 *
 * Threads   Pure functions.
 */
#ifndef GPC_BASE_HASH_H
#define GPC_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define GPC_HASH_START UINT64_C(0xcbf29ce484222325)
#define GPC_HASH_PRIME UINT64_C(0x100000001b3)

static inline uint64_t gpc_hash_bytes(uint64_t hash, const void *data, size_t size)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * GPC_HASH_PRIME;
	return hash;
}

#endif
