/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the module of an address.  Where two modules overlap, the later record counts.  So the address space is cut at
 * every start and end, and each piece belongs to the last module that covers the piece:
 *
 *      module 0   [----------------)           pieces   [0  )[1    )[0 )
 *      module 1        [------)                         sorted, none overlaps
 *
 * A lookup is a binary search in the pieces.  They are made once: for each piece all modules are searched, in some ten
 * milliseconds for GPUCACHE_MAX_MODULES.
 */
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "format/recording_internal.h"

bool gpc_recording_read_module(
	const struct gpc_recording *recording, size_t i, struct gpc_module_view *ret_module)
{
	const unsigned char *record;

	if (i >= recording->n_modules)
		return false;
	record = recording->data + recording->modules[i].offset;
	memcpy(&ret_module->module, record, sizeof ret_module->module);
	ret_module->path = (const char *)record + sizeof ret_module->module;
	return true;
}

/* bounds[2i] and bounds[2i + 1] delimit module i. */
static bool find_last(const uint64_t *bounds, size_t n, uint64_t address, uint32_t *ret_number)
{
	while (n > 0) {
		n--;
		if (address >= bounds[2 * n] && address < bounds[2 * n + 1]) {
			*ret_number = (uint32_t)n;
			return true;
		}
	}
	return false;
}

static void cut(struct gpc_recording *recording, const uint64_t *bounds, const uint64_t *sorted)
{
	size_t n = recording->n_modules;

	for (size_t i = 0; i + 1 < 2 * n; i++) {
		struct gpc_module_range range = { sorted[i], sorted[i + 1], 0 };

		if (range.start < range.end && find_last(bounds, n, range.start, &range.number))
			recording->ranges[recording->n_ranges++] = range;
	}
}

enum gpc_status gpc_recording_index_modules(struct gpc_recording *recording)
{
	size_t n = recording->n_modules;
	uint64_t *bounds = calloc(4 * n + 1, sizeof *bounds);
	uint64_t *sorted = bounds ? bounds + 2 * n : NULL;
	struct gpc_module_view view;

	recording->ranges = calloc(2 * n + 1, sizeof *recording->ranges);
	if (!bounds || !recording->ranges) {
		free(bounds);
		return GPC_NO_METADATA;
	}
	for (size_t i = 0; gpc_recording_read_module(recording, i, &view); i++) {
		bounds[2 * i] = view.module.start;
		bounds[2 * i + 1] = view.module.end;
	}
	memcpy(sorted, bounds, 2 * n * sizeof *sorted);
	qsort(sorted, 2 * n, sizeof *sorted, gpc_array_by_number);
	cut(recording, bounds, sorted);
	free(bounds);
	return GPC_OK;
}

bool gpc_recording_find_module(const struct gpc_recording *recording, uint64_t address,
	size_t *ret_number, struct gpc_module_view *ret_module)
{
	size_t at = GPC_ARRAY_COUNT(recording->n_ranges, i, recording->ranges[i].end <= address);

	if (at == recording->n_ranges || recording->ranges[at].start > address)
		return false;
	*ret_number = recording->ranges[at].number;
	return gpc_recording_read_module(recording, *ret_number, ret_module);
}
