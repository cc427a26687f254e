/* SPDX-License-Identifier: Apache-2.0 */
#include "format/pylines.h"

/* In 3.10: the bytes that follow belong to no line. */
#define NO_LINE_DELTA -128

enum location_code {
	LOCATION_ONE_LINE_0 = 10,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Lines are unsigned in our records; a damaged table may walk below 1. */
static bool give_line(int64_t line, uint32_t *ret_line)
{
	if (line < 1 || line > INT32_MAX)
		return false;
	*ret_line = (uint32_t)line;
	return true;
}

static bool find_lnotab(
	const unsigned char *table, size_t size, int64_t line, uint32_t offset, uint32_t *ret_line)
{
	uint64_t address = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		address += table[i];
		if (address > offset)
			break;
		line += (int8_t)table[i + 1];
	}
	return give_line(line, ret_line);
}

static bool find_linetable(
	const unsigned char *table, size_t size, int64_t line, uint32_t offset, uint32_t *ret_line)
{
	uint64_t end = 0;

	for (size_t i = 0; i + 1 < size; i += 2) {
		int delta = (int8_t)table[i + 1];

		end += table[i];
		if (delta != NO_LINE_DELTA)
			line += delta;
		if (offset < end)
			return delta != NO_LINE_DELTA && give_line(line, ret_line);
	}
	return false;
}

/* Six bits a byte, lowest first; bit 6 says that more follow.  Stops at 5 bytes: no number is longer. */
static uint32_t read_varint(const unsigned char *table, size_t size, size_t *at)
{
	uint32_t value = 0;

	for (unsigned shift = 0; *at < size && shift < 30; shift += 6) {
		unsigned char byte = table[(*at)++];

		value |= (uint32_t)(byte & 0x3f) << shift;
		if (!(byte & 0x40))
			break;
	}
	return value;
}

/* The lowest bit is the sign. */
static int64_t read_svarint(const unsigned char *table, size_t size, size_t *at)
{
	uint32_t value = read_varint(table, size, at);

	return value & 1 ? -(int64_t)(value >> 1) : (int64_t)(value >> 1);
}

static bool find_location(
	const unsigned char *table, size_t size, int64_t line, uint32_t offset, uint32_t *ret_line)
{
	uint64_t end = 0;

	for (size_t i = 0; i < size;) {
		unsigned code = (table[i] >> 3) & 15;

		end += 2 * ((uint64_t)(table[i] & 7) + 1);
		i++;
		if (code == LOCATION_LONG || code == LOCATION_NO_COLUMNS)
			line += read_svarint(table, size, &i);
		else if (code >= LOCATION_ONE_LINE_0 && code < LOCATION_NO_COLUMNS)
			line += code - LOCATION_ONE_LINE_0;
		if (offset < end)
			return code != LOCATION_NONE && give_line(line, ret_line);
		/* The rest of the entry are columns; only the first byte of an entry has bit 7. */
		while (i < size && !(table[i] & 0x80))
			i++;
	}
	return false;
}

bool gpc_pylines_find(uint16_t python_version, const unsigned char *table, size_t size,
	uint32_t first_line, uint32_t offset, uint32_t *ret_line)
{
	if (python_version >= 0x030b)
		return find_location(table, size, first_line, offset, ret_line);
	if (python_version == 0x030a)
		return find_linetable(table, size, first_line, offset, ret_line);
	return find_lnotab(table, size, first_line, offset, ret_line);
}
