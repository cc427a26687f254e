/* SPDX-License-Identifier: Apache-2.0 */
#include "stats/growth.h"

#include <string.h>

#include "base/metamem.h"

/* Allocations before the first row; a short program gets its eight windows soon. */
#define FIRST_STEP 32

static size_t row_size(const struct gpc_growth *growth)
{
	return growth->max_sites * sizeof *growth->rows;
}

enum gpc_status gpc_growth_init(struct gpc_growth *growth, uint32_t device, uint32_t max_sites)
{
	*growth = (struct gpc_growth){ .device = device,
		.max_sites = max_sites,
		.step = FIRST_STEP,
		.next = UINT64_MAX,
		.is_busy = ATOMIC_FLAG_INIT };
	growth->rows = gpc_metamem_map(GPC_GROWTH_ROWS * row_size(growth));
	if (!growth->rows)
		return GPC_NO_METADATA;
	atomic_store(&growth->next, FIRST_STEP);
	return GPC_OK;
}

void gpc_growth_fini(struct gpc_growth *growth)
{
	atomic_store(&growth->next, UINT64_MAX);
	gpc_metamem_unmap(growth->rows, GPC_GROWTH_ROWS * row_size(growth));
	growth->rows = NULL;
	atomic_store(&growth->n_rows, 0);
}

/* What site i holds of the device. */
static uint64_t held(const struct gpc_growth *growth, const struct gpucache_site *sites, uint32_t i)
{
	uint64_t bytes = __atomic_load_n(&sites[i].live_bytes, __ATOMIC_RELAXED);

	/* A site may be half way through a removal: a huge number is a negative one. */
	return sites[i].device != growth->device || bytes > INT64_MAX ? 0 : bytes;
}

/* Keeps every second row: the distance between rows doubles. */
static uint32_t thin(struct gpc_growth *growth, uint32_t n_sites)
{
	for (uint32_t i = 0; i < GPC_GROWTH_ROWS / 2; i++)
		memcpy(growth->rows + (size_t)i * growth->max_sites,
			growth->rows + (size_t)(2 * i + 1) * growth->max_sites,
			n_sites * sizeof *growth->rows);
	growth->step *= 2;
	return GPC_GROWTH_ROWS / 2;
}

void gpc_growth_take_row(struct gpc_growth *growth, uint64_t n_mallocs,
	const struct gpucache_site *sites, uint32_t n_sites)
{
	uint64_t *row;
	uint32_t n;

	if (atomic_flag_test_and_set_explicit(&growth->is_busy, memory_order_acquire))
		return;
	n = atomic_load(&growth->n_rows);
	if (n_sites > growth->max_sites)
		n_sites = growth->max_sites;
	if (n == GPC_GROWTH_ROWS) {
		n = thin(growth, n_sites);
		atomic_store(&growth->n_rows, n);
	}
	row = growth->rows + (size_t)n * growth->max_sites;
	/* Sites only come; so nothing of an older row stays, and what nobody uses takes no memory. */
	for (uint32_t i = 0; i < n_sites; i++)
		row[i] = held(growth, sites, i);
	atomic_store_explicit(&growth->n_rows, n + 1, memory_order_release);
	atomic_store(&growth->next, n_mallocs + growth->step);
	atomic_flag_clear_explicit(&growth->is_busy, memory_order_release);
}

/* How often site i rose over the last windows, the present being the end of the last one. */
static uint32_t count_up(const struct gpc_growth *growth, uint32_t n_rows, uint32_t i, uint64_t now)
{
	uint32_t n_up = 0;
	uint64_t later = now;

	for (uint32_t w = 1; w <= GPC_GROWTH_WINDOWS; w++) {
		uint64_t earlier = growth->rows[(size_t)(n_rows - w) * growth->max_sites + i];

		n_up += later > earlier;
		later = earlier;
	}
	return n_up;
}

struct gpc_growing gpc_growth_find(
	const struct gpc_growth *growth, const struct gpucache_site *sites, uint32_t n_sites)
{
	uint32_t n_rows = atomic_load_explicit(&growth->n_rows, memory_order_acquire);
	struct gpc_growing found = { 0 };

	if (n_rows < GPC_GROWTH_WINDOWS)
		return found;
	for (uint32_t i = 1; i < n_sites && i < growth->max_sites; i++) {
		uint64_t now = held(growth, sites, i);
		uint64_t then =
			growth->rows[(size_t)(n_rows - GPC_GROWTH_WINDOWS) * growth->max_sites + i];

		if (now > then && now - then > found.bytes)
			found = (struct gpc_growing){ .stack = sites[i].stack,
				.bytes = now - then,
				.n_windows = GPC_GROWTH_WINDOWS,
				.n_up = count_up(growth, n_rows, i, now) };
	}
	return found;
}

uint64_t gpc_growth_of(const struct gpc_growth *growth, const struct gpucache_site *sites,
	uint32_t n_sites, uint32_t stack)
{
	uint32_t n_rows = atomic_load_explicit(&growth->n_rows, memory_order_acquire);
	uint32_t row = n_rows > GPC_GROWTH_WINDOWS ? n_rows - GPC_GROWTH_WINDOWS : 0;
	uint64_t grown = 0;

	for (uint32_t i = 1; n_rows && stack && i < n_sites && i < growth->max_sites; i++) {
		uint64_t now = held(growth, sites, i);
		uint64_t then = growth->rows[(size_t)row * growth->max_sites + i];

		if (sites[i].stack == stack && now > then)
			grown += now - then;
	}
	return grown;
}
