/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in order of age, under a tree of their maxima.  When no row is left, close_holes() moves the chunks together. */
#include "sim/gpu/memory/smalls.h"

#include <stdlib.h>
#include <string.h>

#include "sim/gpu/memory/map.h"

#define NO_PLACE UINT32_MAX

static uint64_t rows_bytes(const struct gpc_sim_smalls *smalls)
{
	return smalls->n_leaves * sizeof *smalls->rows;
}

static uint64_t longest_bytes(const struct gpc_sim_smalls *smalls)
{
	return 2 * smalls->n_leaves * sizeof *smalls->longest;
}

bool gpc_sim_smalls_init(struct gpc_sim_smalls *smalls, uint32_t n_chunks)
{
	*smalls = (struct gpc_sim_smalls){ .n_leaves = 2 };
	while (smalls->n_leaves / 2 < n_chunks)
		smalls->n_leaves *= 2;
	smalls->rows = gpc_sim_map(rows_bytes(smalls), PROT_READ | PROT_WRITE);
	smalls->longest = gpc_sim_map(longest_bytes(smalls), PROT_READ | PROT_WRITE);
	if (smalls->rows && smalls->longest)
		return true;
	gpc_sim_smalls_fini(smalls);
	return false;
}

void gpc_sim_smalls_fini(struct gpc_sim_smalls *smalls)
{
	for (uint32_t i = 0; i < smalls->n; i++)
		free(smalls->rows[i]);
	gpc_sim_unmap(smalls->rows, rows_bytes(smalls));
	gpc_sim_unmap(smalls->longest, longest_bytes(smalls));
}

static void set_longest(struct gpc_sim_smalls *smalls, uint32_t place, uint32_t longest)
{
	uint32_t k = smalls->n_leaves + place;

	smalls->longest[k] = (uint16_t)longest;
	for (k /= 2; k > 0; k /= 2) {
		uint16_t low = smalls->longest[2 * k];
		uint16_t high = smalls->longest[2 * k + 1];
		uint16_t both = low > high ? low : high;

		if (smalls->longest[k] == both)
			break;
		smalls->longest[k] = both;
	}
}

void gpc_sim_smalls_update(struct gpc_sim_smalls *smalls, const struct gpc_sim_small *small)
{
	set_longest(smalls, small->place, gpc_sim_slots_longest(small));
}

static void close_holes(struct gpc_sim_smalls *smalls)
{
	uint32_t n = smalls->n;

	smalls->n = 0;
	memset(smalls->longest, 0, longest_bytes(smalls));
	for (uint32_t i = 0; i < n; i++)
		if (smalls->rows[i])
			gpc_sim_smalls_add(smalls, smalls->rows[i]);
}

void gpc_sim_smalls_add(struct gpc_sim_smalls *smalls, struct gpc_sim_small *small)
{
	/* At most half of the rows hold chunks.  n stays below n_leaves: last_before(n) starts at the leaf of row n. */
	if (smalls->n == smalls->n_leaves - 1)
		close_holes(smalls);
	small->place = smalls->n++;
	smalls->rows[small->place] = small;
	gpc_sim_smalls_update(smalls, small);
}

void gpc_sim_smalls_remove(struct gpc_sim_smalls *smalls, const struct gpc_sim_small *small)
{
	smalls->rows[small->place] = NULL;
	set_longest(smalls, small->place, 0);
}

/* The last row before `end` with a run of at least n free slots; NO_PLACE if there is none. */
static uint32_t last_before(const struct gpc_sim_smalls *smalls, uint32_t end, uint32_t n)
{
	uint32_t k = smalls->n_leaves + end;

	/* Ascends until the node to the left has such a run, then descends to that node's last such row. */
	while (k % 2 == 0 || smalls->longest[k - 1] < n) {
		k /= 2;
		if (k <= 1)
			return NO_PLACE;
	}
	k--;
	while (k < smalls->n_leaves)
		k = 2 * k + (smalls->longest[2 * k + 1] >= n);
	return k - smalls->n_leaves;
}

struct gpc_sim_small *gpc_sim_smalls_find(
	const struct gpc_sim_smalls *smalls, uint32_t owner, uint32_t n)
{
	for (uint32_t i = smalls->n; (i = last_before(smalls, i, n)) != NO_PLACE;)
		if (smalls->rows[i]->owner == owner)
			return smalls->rows[i];
	return NULL;
}
