/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A number is read as millionths into 128 bits, and multiplied by 1024 once per power of its unit.  Each product is
 * checked: "1.5GiB" is exact, and 2^64 and above are refused instead of wrapped.
 */
#include "base/bytes.h"

#include <string.h>
#include <strings.h>

/* The power of 1024 that unit[0 .. len) stands for; -1 if it is no unit. */
static int unit_power(const char *unit, size_t len)
{
	static const char letters[] = "bkmgtpe";
	const char *at;

	if (len == 0)
		return 0;
	at = strchr(letters, unit[0] | 0x20);
	if (!at || !*at)
		return -1;
	if (len == 1)
		return (int)(at - letters);
	if (at == letters)
		return -1;
	if ((len == 2 && strncasecmp(unit + 1, "b", 1) == 0) ||
		(len == 3 && strncasecmp(unit + 1, "ib", 2) == 0))
		return (int)(at - letters);
	return -1;
}

bool gpc_read_millionths(const char **at, const char *end, unsigned __int128 *ret_millionths)
{
	unsigned __int128 value = 0;
	uint64_t scale = 1000000;
	bool any = false;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		value = value * 10 + (unsigned)(**at - '0');
		any = true;
		if (value > UINT64_MAX)
			return false;
	}
	value *= scale;
	if (*at < end && **at == '.') {
		for ((*at)++; *at < end && **at >= '0' && **at <= '9'; (*at)++, any = true) {
			scale /= 10;
			value += (unsigned)(**at - '0') * (unsigned __int128)scale;
		}
	}
	*ret_millionths = value;
	return any;
}

bool gpc_bytes_parse(const char *text, size_t len, uint64_t *ret_bytes)
{
	const char *at = text;
	const char *end = text + len;
	unsigned __int128 value;
	int power;

	if (len == 0 || *text == '.' || !gpc_read_millionths(&at, end, &value))
		return false;
	while (at < end && *at == ' ')
		at++;
	power = unit_power(at, (size_t)(end - at));
	if (power < 0)
		return false;
	/* One power at a time: 2^64 * 10^6 * 2^60 would not fit into 128 bits. */
	for (; power > 0; power--) {
		value <<= 10;
		if (value / 1000000 > UINT64_MAX)
			return false;
	}
	*ret_bytes = (uint64_t)(value / 1000000);
	return true;
}

bool gpc_bytes_is_unit(const char *text)
{
	size_t len = strcspn(text, " .,;:\n");

	return (len == 1 && (text[0] == 'B' || text[0] == '%')) ||
	       (len == 3 && strchr("KMGTPE", text[0]) && memcmp(text + 1, "iB", 2) == 0);
}
