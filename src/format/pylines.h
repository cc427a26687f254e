/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CPython's line tables: from the offset of an instruction to the line it was written on.
 *
 *   <= 3.9  co_lnotab      pairs: bytes of code forward, lines forward (signed)
 *   3.10    co_linetable   pairs: bytes that this line covers, lines forward (signed; -128: no line)
 *   3.11 +  location table entries: 1 ccc c nnn (code c, n + 1 instructions of 2 bytes), then by code:
 *           0..9 short form, 1 byte; 10..12 line + (code - 10), 2 bytes; 13 svarint line;
 *           14 svarint line, 3 varints; 15 no line
 *
 * Invariants  No byte outside table[0 .. size) is read; the walk is as long as the table.
 * Threads     Pure.
 * Failure     False: the table does not cover the offset, or says that it belongs to no line.
 * Limits      Lines only; columns are skipped.
 */
#ifndef GPC_FORMAT_PYLINES_H
#define GPC_FORMAT_PYLINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* python_version as in struct gpucache_code: 0x030b is 3.11.  offset in bytes from the start of the code. */
bool gpc_pylines_find(uint16_t python_version, const unsigned char *table, size_t size,
	uint32_t first_line, uint32_t offset, uint32_t *ret_line);

#endif
