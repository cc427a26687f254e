/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte counts rounded for printing, so that sums add up as printed (largest remainder).
 *
 *	bytes       each to the nearest         as parts of the sum
 *	1.004 GiB   1.00 GiB                    1.01 GiB    <- rounded up
 *	1.004 GiB   1.00 GiB                    1.00 GiB
 *	8.000 MiB   8.00 MiB                    8.00 MiB    small numbers keep their unit
 *	2.016 GiB   2.02 GiB   1.00 + 1.00 !    2.02 GiB    1.01 + 1.00 + 0.01
 *
 * Invariants  1 The parts as printed, added and rounded to the last digit of the sum, are the sum as
 *               printed.  2 A part differs from its bytes by less than one in its last digit.
 *             3 Shares of the parts add up to the share of their sum.
 * Threads     Pure functions; no memory.
 * Failure     None.
 * Limits      Invariants 1 and 2 hold if the parts' bytes add up to the sum's.
 */
#ifndef GPC_BASE_ROUNDED_H
#define GPC_BASE_ROUNDED_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* An amount: `hundredths` / 100 times 1024^unit bytes. */
struct gpc_rounded {
	uint64_t hundredths;
	unsigned unit;
};

/* `bytes` rounded to the nearest, in the largest unit of which there is at least 1. */
struct gpc_rounded gpc_rounded_of(uint64_t bytes);

/* Rounds parts[0 .. n) so that they add up to `sum` as printed.  UINT64_MAX, unknown, yields 0 B and is left out. */
void gpc_rounded_parts(
	struct gpc_rounded sum, const uint64_t parts[], size_t n, struct gpc_rounded ret_parts[]);

/*
 * The shares of parts[0 .. n) in `whole`, in tenths of a percent.  `whole` may exceed the sum of the parts.  UINT64_MAX
 * yields 0 and is left out.
 */
void gpc_rounded_shares(uint64_t whole, const uint64_t parts[], size_t n, uint32_t ret_tenths[]);

/* As gpc_rounded_shares, but the shares add up to `tenths`, which the caller prints as the share of the sum. */
void gpc_rounded_split(uint32_t tenths, const uint64_t parts[], size_t n, uint32_t ret_tenths[]);

/* Appends the amount as text: "512 B", "1.50 GiB". */
void gpc_text_add_rounded(struct gpc_text *text, struct gpc_rounded amount);

#endif
