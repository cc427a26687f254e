/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the line of an instruction of a Python code object in CPython's own line tables.
 *
 * Three formats, all of them runs of instructions in ascending order of offset:
 *
 *   <= 3.9   co_lnotab     pairs (bytes to the next entry, signed change of the line)
 *   3.10     co_linetable  pairs (bytes of this entry, signed change of the line; -128: no line)
 *   >= 3.11  co_linetable  entries (1 | form:4 | code units - 1:3) with operands of 6 bits a byte;
 *                          the forms differ in their columns, which are skipped
 *
 * Pure functions over bytes: no Python, no state.  A damaged table yields a wrong line or none, nothing
 * worse.
 */
#ifndef GPC_MODEL_PYTHON_LINES_H
#define GPC_MODEL_PYTHON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The offset of an unknown instruction. */
#define GPC_PYTHON_NO_OFFSET UINT32_MAX

/*
 * The line of the instruction at byte `offset`, or 0 if the table has none.  version: 0x030b for 3.11.
 * The line of GPC_PYTHON_NO_OFFSET is first_line.
 */
uint32_t gpc_python_line(
	uint16_t version, const void *table, size_t size, uint32_t first_line, uint32_t offset);

/* A run of instructions of one line: from the end of the previous piece up to `end`. */
struct gpc_python_piece {
	uint64_t end;
	uint32_t line; /* 0: none */
};

/* An iterator over the pieces of a table, which the caller keeps. */
struct gpc_python_lines {
	const uint8_t *table;
	size_t size;
	size_t at;
	uint64_t end;
	int64_t line;
	uint16_t version;
	bool is_over;
};

struct gpc_python_lines gpc_python_lines_begin(
	uint16_t version, const void *table, size_t size, uint32_t first_line);
bool gpc_python_lines_next(struct gpc_python_lines *lines, struct gpc_python_piece *ret_piece);

#endif
