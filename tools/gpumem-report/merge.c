/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The odd one out is the row whose peak is farthest from the median, by more than a twentieth of it and 32 MiB; the
 * reason is the call site whose bytes are farthest from that site's own median.  O(sites * rows log rows).
 */
#include "tools/gpumem-report/merge.h"

#include <stdlib.h>

#include "format/memory.h"

/* Less than this from the median is like the others: of it, and in bytes. */
#define ODD_PARTS 20
#define ODD_BYTES (UINT64_C(32) << 20)

static uint64_t bytes_at(const struct gpc_job_row *row, uint64_t key)
{
	for (unsigned i = 0; i < row->n_sites; i++)
		if (row->sites[i].key == key)
			return row->sites[i].bytes;
	return 0;
}

/* The median of the rows' bytes at that site; key 0: of their peaks. */
static uint64_t median_at(const struct gpc_job *job, uint64_t key, uint64_t *numbers)
{
	for (size_t i = 0; i < job->n; i++)
		numbers[i] = key ? bytes_at(&job->rows[i], key) : job->rows[i].peak_live_bytes;
	return gpc_job_median(numbers, job->n);
}

/* Compares by the sites of the larger row: the odd one, or a usual one. */
static void compare_sites(struct gpc_merge *merge, const struct gpc_job *job, uint64_t *numbers)
{
	merge->odd_site_of = merge->odd;
	for (size_t i = 0; i < job->n && !merge->is_odd_more; i++)
		if (job->rows[i].peak_live_bytes == merge->median_bytes)
			merge->odd_site_of = &job->rows[i];
	for (unsigned i = 0; i < merge->odd_site_of->n_sites; i++) {
		const struct gpc_job_site *site = &merge->odd_site_of->sites[i];
		uint64_t median = median_at(job, site->key, numbers);
		uint64_t bytes = bytes_at(merge->odd, site->key);
		uint64_t far = gpc_merge_distance(bytes, median);

		if ((bytes > median) == merge->is_odd_more && far > merge->odd_site.bytes)
			merge->odd_site = (struct gpc_job_site){ site->key, far, site->stack };
	}
}

/* Needs at least three rows: of two, neither is the odd one. */
static void find_odd(struct gpc_merge *merge, const struct gpc_job *job)
{
	uint64_t farthest = 0;

	for (size_t i = 0; i < job->n && job->n >= 3; i++) {
		uint64_t far =
			gpc_merge_distance(job->rows[i].peak_live_bytes, merge->median_bytes);

		if (far > farthest && far > ODD_BYTES && far > merge->median_bytes / ODD_PARTS) {
			farthest = far;
			merge->odd = &job->rows[i];
		}
	}
	merge->is_odd_more = merge->odd && merge->odd->peak_live_bytes > merge->median_bytes;
}

struct gpc_merge gpc_merge_compare(const struct gpc_job *job)
{
	struct gpc_merge merge = { .first = gpc_job_first(job->rows, job->n, NULL) };
	uint64_t *numbers = gpc_new(job->n, sizeof *numbers);

	merge.median_bytes = median_at(job, 0, numbers);
	find_odd(&merge, job);
	if (merge.odd)
		compare_sites(&merge, job, numbers);
	free(numbers);
	return merge;
}
