/* SPDX-License-Identifier: Apache-2.0 */
/* Three call sites on one device, which ask and give back. */
#ifndef GPC_TESTS_GROWTH_SCENE_H
#define GPC_TESTS_GROWTH_SCENE_H

#include "tests/unit/unit.h"

#include <stdbool.h>

#include "record/growth.h"

/* Their stacks are 11, 12 and 13. */
static struct {
	struct gpucache_site site;
	struct gpc_windows windows;
} sites[3];
static struct gpc_window_clock clock_of_all;
/* The request that fails. */
static struct gpc_growth_request request;

static inline int set_up(void **state)
{
	memset(sites, 0, sizeof sites);
	sites[0].site.stack = 11;
	sites[1].site.stack = 12;
	sites[2].site.stack = 13;
	gpc_window_clock_init(&clock_of_all);
	request = (struct gpc_growth_request){ 0 };
	return 0;
}

static inline uint64_t live_bytes(void)
{
	return sites[0].site.live_bytes + sites[1].site.live_bytes + sites[2].site.live_bytes;
}

static inline void ask_for(uint32_t stack, uint64_t bytes)
{
	struct gpucache_site *site = &sites[stack - 11].site;
	struct gpc_windows *windows = &sites[stack - 11].windows;

	site->live_bytes += bytes;
	site->live_blocks++;
	site->total_bytes += bytes;
	site->total_blocks++;
	gpc_windows_add(windows, &clock_of_all, bytes);
	gpc_window_clock_note(&clock_of_all, live_bytes());
}

static inline void give_back(uint32_t stack, uint64_t bytes)
{
	struct gpucache_site *site = &sites[stack - 11].site;
	struct gpc_windows *windows = &sites[stack - 11].windows;

	site->live_bytes -= bytes;
	site->live_blocks--;
	gpc_windows_remove(windows, &clock_of_all, bytes);
}

static inline void ask(uint32_t stack, bool is_kept)
{
	ask_for(stack, 100);
	if (!is_kept)
		give_back(stack, 100);
}

/* What the sites freed that are not much older than this one. */
static inline uint64_t freed_by_others(int site)
{
	uint64_t n = 0;

	for (int i = 0; i < 3; i++)
		if (!gpc_growth_is_older(&sites[i].windows, &sites[site].windows, &clock_of_all))
			n += sites[i].site.total_blocks - sites[i].site.live_blocks;
	return n;
}

static inline struct gpc_growth find(void)
{
	struct gpc_growth growth = { 0 };

	for (int i = 0; i < 3; i++) {
		gpc_windows_reach(&sites[i].windows, &clock_of_all);
		gpc_growth_consider(&growth, &sites[i].site, &sites[i].windows, &clock_of_all,
			request, freed_by_others(i));
	}
	return growth;
}

#endif
