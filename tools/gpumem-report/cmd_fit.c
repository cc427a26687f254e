/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `fit`: which GPU a run needs, and whether it fits on a given one; from a recording, or by running a program
 * (fit_run.c).
 */
#include "tools/gpumem-report/fit.h"
#include "tools/gpumem-report/json.h"

enum gpc_exit gpc_cmd_fit(struct gpc_report *report)
{
	struct gpc_fit fit;
	enum gpc_status st = gpc_fit_find(report, &fit);
	struct json_object *root;

	if (st == GPC_NOT_FOUND)
		gpc_complain("%s: its process took no memory of a GPU", report->recording->path);
	else if (st)
		gpc_complain("no memory for the replay");
	if (st)
		return st == GPC_NOT_FOUND ? GPC_EXIT_NOT_FOUND : GPC_EXIT_IO;
	if (report->options->json) {
		root = gpc_json_begin(report, "fit");
		gpc_fit_json(report, &fit, root);
		gpc_json_end(report, root);
	} else {
		gpc_report_print_who(report);
		gpc_fit_print(report, &fit);
		gpc_report_print_notes(report);
	}
	return gpc_fit_is_good(&fit) ? GPC_EXIT_MADE : GPC_EXIT_CONDITION;
}
