/* SPDX-License-Identifier: Apache-2.0 */
/* A site is found again in other rows by its key (ranks_of_job.h), so no symbols are read. */
#include "tools/gpumem-report/job/compare.h"

#include <stdlib.h>

#include "format/array.h"
#include "format/memory.h"

struct comparison {
	const struct gpc_job_row *rows;
	size_t n;
	uint64_t *numbers; /* scratch, of n */
	struct gpc_findings found;
};

/* A row is odd if it differs from the median by more than 1/ODD_PARTS of it, and by more than ODD_BYTES. */
#define ODD_PARTS 20
#define ODD_BYTES (UINT64_C(32) << 20)

static uint64_t bytes_at(const struct gpc_job_row *row, uint64_t key)
{
	for (unsigned i = 0; i < row->n_sites; i++)
		if (row->sites[i].key == key)
			return row->sites[i].bytes;
	return 0;
}

/* The lower median of the rows' bytes at site `key`, or with key 0 of their peaks; a row without a GPU does not count. */
static uint64_t median_at(struct comparison *all, uint64_t key)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (all->rows[i].device.ordinal >= 0)
			all->numbers[n++] =
				key ? bytes_at(&all->rows[i], key) : all->rows[i].peak_live_bytes;
	if (n == 0)
		return 0;
	qsort(all->numbers, n, sizeof *all->numbers, gpc_array_by_number);
	return all->numbers[(n - 1) / 2];
}

/*
 * Finds the call site that makes the odd row odd.  Takes the sites of the odd row if it is above the median; otherwise
 * those of a row at the median, because a site that the odd row lacks is not in its own list.
 */
static void compare_sites(struct comparison *all)
{
	struct gpc_findings *found = &all->found;

	found->odd_site_of = found->odd;
	for (size_t i = 0; i < all->n && !found->is_odd_more; i++)
		if (all->rows[i].peak_live_bytes == found->median_bytes)
			found->odd_site_of = &all->rows[i];
	for (unsigned i = 0; i < found->odd_site_of->n_sites; i++) {
		const struct gpc_job_site *site = &found->odd_site_of->sites[i];
		uint64_t median = median_at(all, site->key);
		uint64_t bytes = bytes_at(found->odd, site->key);
		uint64_t far = gpc_distance(bytes, median);

		if ((bytes > median) == found->is_odd_more && far > found->odd_site.bytes)
			found->odd_site = (struct gpc_job_site){ site->key, far, site->stack };
	}
}

/* Needs at least three rows: of two, neither is the odd one. */
static void find_odd(struct comparison *all)
{
	struct gpc_findings *found = &all->found;
	uint64_t farthest = 0;

	for (size_t i = 0; i < all->n && all->n >= 3; i++) {
		uint64_t far = gpc_distance(all->rows[i].peak_live_bytes, found->median_bytes);

		if (all->rows[i].device.ordinal >= 0 && far > farthest && far > ODD_BYTES &&
			far > found->median_bytes / ODD_PARTS) {
			farthest = far;
			found->odd = &all->rows[i];
		}
	}
	found->is_odd_more = found->odd && found->odd->peak_live_bytes > found->median_bytes;
}

struct gpc_findings gpc_job_compare(const struct gpc_job_row *rows, size_t n)
{
	struct comparison all = {
		.rows = rows, .n = n, .numbers = gpc_new(n, sizeof *all.numbers)
	};

	for (size_t i = 0; i < n; i++)
		if (rows[i].oom.number &&
			(!all.found.first ||
				rows[i].oom.realtime_ns < all.found.first->oom.realtime_ns))
			all.found.first = &rows[i];
	all.found.median_bytes = median_at(&all, 0);
	find_odd(&all);
	if (all.found.odd)
		compare_sites(&all);
	free(all.numbers);
	return all.found;
}
