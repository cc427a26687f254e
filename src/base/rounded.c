/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest-remainder method: all parts are rounded down, and the difference to the sum is distributed, one in the
 * last digit each, to the parts that lost most.  Parts in a smaller unit than the sum's are too small to matter in the
 * sum's last digit, so they are rounded to the nearest.
 */
#include "base/rounded.h"

#include <stdbool.h>

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 signed_wide;

#define BIGGEST_UNIT 6

/* How parts become numbers: each is `scale * part / whole`, rounded down or up. */
struct scale {
	uint64_t scale;
	wide whole;    /* the parts of a damaged recording may add up to more than 64 bits */
	bool has_unit; /* parts in other units than `unit` are left out */
	unsigned unit;
};

static unsigned unit_of(uint64_t bytes)
{
	unsigned unit = 0;

	while (unit < BIGGEST_UNIT && (bytes >> (10 * unit)) >= 1024)
		unit++;
	return unit;
}

struct gpc_rounded gpc_rounded_of(uint64_t bytes)
{
	struct gpc_rounded amount = { .unit = unit_of(bytes) };
	uint64_t whole = UINT64_C(1) << (10 * amount.unit);

	amount.hundredths = (uint64_t)(((wide)bytes * 100 + whole / 2) / whole);
	if (amount.hundredths == 102400 && amount.unit < BIGGEST_UNIT) {
		/* Rounding gave 1024.00: that is 1.00 of the next unit. */
		amount.hundredths = 100;
		amount.unit++;
	}
	return amount;
}

static bool is_counted(const struct scale *scale, uint64_t part)
{
	return part != UINT64_MAX && (!scale->has_unit || unit_of(part) == scale->unit);
}

static uint64_t rounded_down(const struct scale *scale, uint64_t part)
{
	return (uint64_t)((wide)part * scale->scale / scale->whole);
}

static wide remainder_of(const struct scale *scale, uint64_t part)
{
	return (wide)part * scale->scale % scale->whole;
}

static size_t count_above(
	const struct scale *scale, const uint64_t parts[], size_t n, wide remainder)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		count += is_counted(scale, parts[i]) && remainder_of(scale, parts[i]) > remainder;
	return count;
}

/* The least remainder that at most n_up parts exceed. */
static wide find_threshold(const struct scale *scale, const uint64_t parts[], size_t n, size_t n_up)
{
	wide low = 0;
	wide high = scale->whole;

	while (low < high) {
		wide middle = low + (high - low) / 2;

		if (count_above(scale, parts, n, middle) <= n_up)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Picks the parts to round up: all above the threshold, and the first n_at of those that equal it. */
struct chooser {
	wide threshold;
	size_t n_at; /* parts at the threshold that are still to be picked */
};

static struct chooser choose(
	const struct scale *scale, const uint64_t parts[], size_t n, size_t n_up)
{
	struct chooser chooser = { .threshold = find_threshold(scale, parts, n, n_up) };

	chooser.n_at = n_up - count_above(scale, parts, n, chooser.threshold);
	return chooser;
}

static bool is_rounded_up(struct chooser *chooser, const struct scale *scale, uint64_t part)
{
	wide remainder = remainder_of(scale, part);

	if (remainder != chooser->threshold || remainder == 0 || chooser->n_at == 0)
		return remainder > chooser->threshold;
	chooser->n_at--;
	return true;
}

/* Converts hundredths of a byte to hundredths of `unit`, rounded to the nearest; 0 if `value` is negative. */
static size_t nearest(signed_wide value, unsigned unit)
{
	signed_wide one = (signed_wide)1 << (10 * unit);

	return value <= 0 ? 0 : (size_t)((value + one / 2) / one);
}

/*
 * If few parts are in the sum's unit, the errors of many small parts may add up to one in the sum's last digit.  Then
 * the first of the small parts are rounded the other way.
 */
static void turn_small_parts(signed_wide lacking, struct gpc_rounded sum, const uint64_t parts[],
	size_t n, struct gpc_rounded ret_parts[])
{
	signed_wide half = ((signed_wide)1 << (10 * sum.unit)) / 2;

	for (size_t i = 0; i < n && (lacking > half || lacking < -half); i++) {
		struct gpc_rounded *part = &ret_parts[i];
		signed_wide lost;

		if (parts[i] == UINT64_MAX || part->unit >= sum.unit)
			continue;
		lost = (signed_wide)parts[i] * 100 -
		       ((signed_wide)part->hundredths << (10 * part->unit));
		if (lacking > half && lost > 0) {
			part->hundredths++;
			lacking -= (signed_wide)1 << (10 * part->unit);
		} else if (lacking < -half && lost < 0) {
			part->hundredths--;
			lacking += (signed_wide)1 << (10 * part->unit);
		}
	}
}

void gpc_rounded_parts(
	struct gpc_rounded sum, const uint64_t parts[], size_t n, struct gpc_rounded ret_parts[])
{
	const struct scale scale = { 100, UINT64_C(1) << (10 * sum.unit), true, sum.unit };
	signed_wide lacking = (signed_wide)sum.hundredths << (10 * sum.unit);
	struct chooser chooser;

	for (size_t i = 0; i < n; i++) {
		ret_parts[i] = (struct gpc_rounded){ 0 };
		if (parts[i] == UINT64_MAX)
			continue;
		ret_parts[i] = gpc_rounded_of(parts[i]);
		if (is_counted(&scale, parts[i]))
			ret_parts[i] =
				(struct gpc_rounded){ rounded_down(&scale, parts[i]), sum.unit };
		lacking -= (signed_wide)ret_parts[i].hundredths << (10 * ret_parts[i].unit);
	}
	chooser = choose(&scale, parts, n, nearest(lacking, sum.unit));
	for (size_t i = 0; i < n; i++) {
		bool is_up =
			is_counted(&scale, parts[i]) && is_rounded_up(&chooser, &scale, parts[i]);

		if (!is_up)
			continue;
		ret_parts[i].hundredths++;
		lacking -= (signed_wide)1 << (10 * sum.unit);
	}
	turn_small_parts(lacking, sum, parts, n, ret_parts);
}

static wide sum_of(const uint64_t parts[], size_t n)
{
	wide sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += parts[i] == UINT64_MAX ? 0 : parts[i];
	return sum;
}

void gpc_rounded_split(uint32_t tenths, const uint64_t parts[], size_t n, uint32_t ret_tenths[])
{
	wide sum = sum_of(parts, n);
	const struct scale scale = { .scale = tenths, .whole = sum ? sum : 1 };
	struct chooser chooser;
	uint64_t down = 0;

	for (size_t i = 0; i < n; i++)
		if (is_counted(&scale, parts[i]))
			down += rounded_down(&scale, parts[i]);
	chooser = choose(&scale, parts, n, sum ? (size_t)(tenths - down) : 0);
	for (size_t i = 0; i < n; i++)
		ret_tenths[i] = is_counted(&scale, parts[i])
					? (uint32_t)(rounded_down(&scale, parts[i]) +
						     is_rounded_up(&chooser, &scale, parts[i]))
					: 0;
}

void gpc_rounded_shares(uint64_t whole, const uint64_t parts[], size_t n, uint32_t ret_tenths[])
{
	wide sum = sum_of(parts, n);

	gpc_rounded_split(
		whole ? (uint32_t)((sum * 1000 + whole / 2) / whole) : 0, parts, n, ret_tenths);
}

void gpc_text_add_rounded(struct gpc_text *text, struct gpc_rounded amount)
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

	if (amount.unit == 0)
		gpc_text_add(text, "%llu B", (unsigned long long)(amount.hundredths / 100));
	else
		gpc_text_add(text, "%llu.%02llu %s", (unsigned long long)(amount.hundredths / 100),
			(unsigned long long)(amount.hundredths % 100), units[amount.unit]);
}
