/* SPDX-License-Identifier: Apache-2.0 */
#include "base/python_lines.h"

#include <stdbool.h>

#define NO_LINE_310 (-128)

/*
 * Forms of an entry of the location table; 0 .. 9 are short ones, on the line of their
 * predecessor.
 */
#define FORM_SAME_LINE 10
#define FORM_TWO_LINES 12
#define FORM_NO_COLUMN 13
#define FORM_LONG      14
#define FORM_NONE      15

static uint32_t to_line(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
}

static uint32_t line_39(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t address = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		address += table[i];
		if (address > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return to_line(line);
}

static uint32_t line_310(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int8_t change = (int8_t)table[i + 1];

		end += table[i];
		if (change != NO_LINE_310)
			line += change;
		if (offset < end)
			return change == NO_LINE_310 ? 0 : to_line(line);
	}
	return 0;
}

/*
 * A signed number in groups of 6 bits, the lowest first, bit 6 set where another one follows;
 * sign in bit 0.
 */
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

static int64_t line_change_311(const uint8_t *table, size_t size, size_t at)
{
	unsigned form = (table[at] >> 3) & 15;

	if (form == FORM_NO_COLUMN || form == FORM_LONG)
		return read_signed(table, size, at + 1);
	if (form >= FORM_SAME_LINE && form <= FORM_TWO_LINES)
		return form - FORM_SAME_LINE;
	return 0;
}

static uint32_t line_311(const uint8_t *table, size_t size, uint32_t first_line, uint32_t offset)
{
	int64_t line = first_line;
	uint64_t end = 0;
	size_t at = 0;

	while (at < size) {
		unsigned form = (table[at] >> 3) & 15;

		/* Code units have two bytes. */
		end += 2 * (uint64_t)((table[at] & 7) + 1);
		line += line_change_311(table, size, at);
		/* No source has such a line, and more of these changes would overflow. */
		if (line > INT32_MAX || line < INT32_MIN)
			return 0;
		if (offset < end)
			return form == FORM_NONE ? 0 : to_line(line);
		/* Only the first byte of an entry has bit 7 set. */
		do
			at++;
		while (at < size && !(table[at] & 0x80));
	}
	return 0;
}

uint32_t gpc_python_line(
	uint16_t version, const void *table, size_t size, uint32_t first_line, uint32_t offset)
{
	if (offset == GPC_PYTHON_NO_OFFSET)
		return first_line;
	if (version >= 0x030b)
		return line_311(table, size, first_line, offset);
	if (version == 0x030a)
		return line_310(table, size, first_line, offset);
	return line_39(table, size, first_line, offset);
}
