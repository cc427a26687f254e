/* SPDX-License-Identifier: Apache-2.0 */
/* Byte counts as people write them.  For sums, see base/saturating.h. */
#ifndef GPC_BASE_BYTES_H
#define GPC_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/saturating.h"

#define GPC_KIB (UINT64_C(1) << 10)
#define GPC_MIB (UINT64_C(1) << 20)
#define GPC_GIB (UINT64_C(1) << 30)

/*
 * Parses text[0 .. len) as bytes: "1073741824", "512M", "1.5GiB", "20 MB".  Units are binary in any
 * spelling (B, K, KB, KiB ... E, EB, EiB) and case.  Returns false, with *ret_bytes unchanged, for
 * anything else and beyond 2^64 - 1.
 */
bool gpc_bytes_parse(const char *text, size_t len, uint64_t *ret_bytes);

/*
 * Reads the decimal number at *at as millionths, drops further decimals, and moves *at behind the number.  Returns
 * false if there is no digit or the number exceeds 2^64 - 1.
 */
bool gpc_read_millionths(const char **at, const char *end, unsigned __int128 *ret_millionths);

/* Returns true if the text begins with a unit or a percent sign: a line must not break before it. */
bool gpc_bytes_is_unit(const char *text);

/* Rounds up to a multiple of `step`, a power of two. */
static inline uint64_t gpc_round_up(uint64_t value, uint64_t step)
{
	return (value + step - 1) & ~(step - 1);
}

#endif
