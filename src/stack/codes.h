/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python code objects seen on a stack.  Each is stored once, under a number, with the table that gives its line
 * numbers, so that readers need no interpreter.
 *
 *      intern table (intern.h)   [ struct gpucache_code | name, file, line table, padding ] ...   as in the recording
 *      keys[i]                   { code, fingerprint } of number i
 *
 * The key is the object's address and a fingerprint, because the interpreter reuses the address as soon as the object
 * dies: the number that Python gives each object, or a hash of its content (python_code.h).
 *
 * Invariants  1 The key of a number is complete before the number is published, and never changes.
 * Threads     find, add and get: any.  init and fini: one.
 * Failure     Number 0: no room in slots, arena or sink; the table then accepts no new code objects.
 * Limits      A line table is truncated at GPUCACHE_MAX_CODE_LINES bytes; the lines beyond are unknown.
 */
#ifndef GPC_STACK_CODES_H
#define GPC_STACK_CODES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "gpucache_format.h"
#include "stack/intern.h"

/* Bytes for records.  Of a program's functions only some hundreds allocate GPU memory or call such functions. */
#define GPC_CODES_ARENA (4u << 20)

struct gpc_code_key {
	uintptr_t code;
	uint64_t fingerprint;
};

/* The stored parts of a code object.  Texts are UTF-8 without terminating NUL, sizes are in bytes. */
struct gpc_code {
	const char *name;
	const char *file;
	const void *lines;
	uint32_t name_size;
	uint32_t file_size;
	uint32_t lines_size;
	uint32_t first_line;
	uint16_t python_version; /* 0x030b: 3.11 */
};

struct gpc_codes {
	struct gpc_intern intern;
	struct gpc_code_key *keys;
};

GPC_MUST_CHECK enum gpc_status gpc_codes_init(
	struct gpc_codes *codes, const struct gpc_stack_sink *sink);
void gpc_codes_fini(struct gpc_codes *codes);

/* The number of a code object, or 0 if it is unknown. */
uint32_t gpc_codes_find(const struct gpc_codes *codes, const struct gpc_code_key *key);

/* As find, but copies an unknown code object and appends it to CODES.  0: no room. */
uint32_t gpc_codes_add(
	struct gpc_codes *codes, const struct gpc_code_key *key, const struct gpc_code *code);

/* Reads code object `number`, whose texts stay in place until fini.  False: there is none. */
bool gpc_codes_get(const struct gpc_codes *codes, uint32_t number, struct gpc_code *ret_code);

#endif
