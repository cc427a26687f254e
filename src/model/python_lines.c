/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decoders for CPython's three line tables, one entry per call.  Reads are bounded by the table's size and line changes
 * by the range of int, so a damaged table only ends early.
 */
#include "model/python_lines.h"

#include <stdbool.h>

#define NO_LINE_310 (-128)

/* Entry forms of the location table; 0 .. 9 are short forms, on the line of the previous entry. */
#define FORM_SAME_LINE 10
#define FORM_TWO_LINES 12
#define FORM_NO_COLUMN 13
#define FORM_LONG      14
#define FORM_NONE      15

static uint32_t to_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

/* The last piece, behind the last entry, lasts to the end of the code. */
static bool next_39(struct gpc_python_lines *lines, struct gpc_python_piece *ret_piece)
{
	if (lines->is_over)
		return false;
	ret_piece->line = to_line(lines->line);
	if (lines->at + 1 >= lines->size) {
		lines->is_over = true;
		ret_piece->end = UINT64_MAX;
		return true;
	}
	lines->end += lines->table[lines->at];
	lines->line += (int8_t)lines->table[lines->at + 1];
	lines->at += 2;
	ret_piece->end = lines->end;
	return true;
}

static bool next_310(struct gpc_python_lines *lines, struct gpc_python_piece *ret_piece)
{
	int8_t change;

	if (lines->at + 1 >= lines->size)
		return false;
	change = (int8_t)lines->table[lines->at + 1];
	lines->end += lines->table[lines->at];
	lines->at += 2;
	if (change != NO_LINE_310)
		lines->line += change;
	ret_piece->end = lines->end;
	ret_piece->line = change == NO_LINE_310 ? 0 : to_line(lines->line);
	return true;
}

/* A signed number in groups of 6 bits, lowest first; bit 6 is set if another group follows; the sign is bit 0. */
static int64_t read_signed(const uint8_t *table, size_t size, size_t at)
{
	uint64_t value = 0;
	unsigned shift = 0;
	bool more = true;

	while (more && at < size && shift < 60) {
		value |= (uint64_t)(table[at] & 0x3f) << shift;
		more = (table[at] & 0x40) != 0;
		shift += 6;
		at++;
	}
	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static bool next_311(struct gpc_python_lines *lines, struct gpc_python_piece *ret_piece)
{
	unsigned form;

	if (lines->at >= lines->size)
		return false;
	form = (lines->table[lines->at] >> 3) & 15;
	/* A code unit is two bytes. */
	lines->end += 2 * (uint64_t)((lines->table[lines->at] & 7) + 1);
	if (form == FORM_NO_COLUMN || form == FORM_LONG)
		lines->line += read_signed(lines->table, lines->size, lines->at + 1);
	else if (form >= FORM_SAME_LINE && form <= FORM_TWO_LINES)
		lines->line += form - FORM_SAME_LINE;
	/* No source has such a line, and further changes could overflow. */
	if (lines->line > INT32_MAX || lines->line < INT32_MIN)
		return false;
	/* Only the first byte of an entry has bit 7 set. */
	do
		lines->at++;
	while (lines->at < lines->size && !(lines->table[lines->at] & 0x80));
	ret_piece->end = lines->end;
	ret_piece->line = form == FORM_NONE ? 0 : to_line(lines->line);
	return true;
}

struct gpc_python_lines gpc_python_lines_begin(
	uint16_t version, const void *table, size_t size, uint32_t first_line)
{
	return (struct gpc_python_lines){
		.version = version, .table = table, .size = size, .line = first_line
	};
}

bool gpc_python_lines_next(struct gpc_python_lines *lines, struct gpc_python_piece *ret_piece)
{
	if (lines->version >= 0x030b)
		return next_311(lines, ret_piece);
	if (lines->version == 0x030a)
		return next_310(lines, ret_piece);
	return next_39(lines, ret_piece);
}

uint32_t gpc_python_line(
	uint16_t version, const void *table, size_t size, uint32_t first_line, uint32_t offset)
{
	struct gpc_python_lines lines = gpc_python_lines_begin(version, table, size, first_line);
	struct gpc_python_piece piece;

	if (offset == GPC_PYTHON_NO_OFFSET)
		return first_line;
	while (gpc_python_lines_next(&lines, &piece))
		if (offset < piece.end)
			return piece.line;
	return 0;
}
