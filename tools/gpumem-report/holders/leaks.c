/* SPDX-License-Identifier: Apache-2.0 */
/* Moves the rows that libraries keep behind the leaks; the files on a row's stack tell them apart (model/libraries.h). */
#include "tools/gpumem-report/holders/leaks.h"

#include "model/libraries.h"

/* No library needs as many buffers of one kind. */
#define LOOP_BLOCKS 160u

static bool is_kept(const struct gpc_recording *recording, const struct gpc_row *row)
{
	struct gpc_library_keeper keeper = { 0 };
	struct gpc_module_view module;
	struct gpc_stack_view view;
	size_t number;

	if (row->n_blocks >= LOOP_BLOCKS || !gpc_recording_find_stack(recording, row->id, &view))
		return false;
	for (unsigned i = 0; i < view.n_native; i++)
		if (gpc_recording_find_module(recording, view.native[i] - 1, &number, &module) &&
			!gpc_library_keeper_look(&keeper, module.path))
			break;
	return keeper.is_kept;
}

void gpc_leaks_find(struct gpc_leaks *leaks, const struct gpc_report *report)
{
	struct gpc_row *rows;
	size_t n = 0;

	gpc_holdings_from_live(&leaks->holdings, report, -1);
	rows = leaks->holdings.rows;
	for (size_t i = 0; i < leaks->holdings.n; i++)
		if (!rows[i].kind)
			rows[n++] = rows[i];
	leaks->holdings.n = n;
	leaks->rows = rows;
	leaks->n = 0;
	for (size_t i = 0; i < n; i++) {
		struct gpc_row row = rows[i];

		if (is_kept(report->recording, &row))
			continue;
		rows[i] = rows[leaks->n];
		rows[leaks->n++] = row;
	}
	leaks->kept = rows + leaks->n;
	leaks->n_kept = n - leaks->n;
}

void gpc_leaks_fini(struct gpc_leaks *leaks)
{
	gpc_holdings_fini(&leaks->holdings);
}

bool gpc_leaks_exist(const struct gpc_report *report)
{
	struct gpc_leaks leaks;

	gpc_leaks_find(&leaks, report);
	gpc_leaks_fini(&leaks);
	return leaks.n > 0;
}
