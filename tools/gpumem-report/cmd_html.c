/* SPDX-License-Identifier: Apache-2.0 */
/* `html`: one self-contained file for a browser: the page, D3, and the data of each recording. */
#include <unistd.h>

#include "tools/gpumem-report/filter.h"
#include "tools/gpumem-report/html.h"

static bool is_possible(const struct gpc_report *report)
{
	if (&gpc_html_head[0] == &gpc_html_head_end[0])
		gpc_complain(
			"this gpumem-report was built without D3, and can make no page; install "
			"node-d3 (Debian's name) and build again");
	else if (gpc_filter_is_set(report->options))
		gpc_complain("html takes no filters: its page shows everything, and has a search");
	else if (!report->options->output && isatty(STDOUT_FILENO))
		gpc_complain("html does not write to a terminal: name a file, -o report.html");
	else
		return true;
	return false;
}

static void put(const struct gpc_report *report, const char *from, const char *to)
{
	fwrite(from, 1, (size_t)(to - from), report->paper.out);
}

enum gpc_exit gpc_cmd_html(struct gpc_report *report)
{
	static unsigned n_runs;

	if (!report->recording) {
		if (n_runs) {
			fputs("]}", report->paper.out);
			put(report, gpc_html_tail, gpc_html_tail_end);
		}
		n_runs = 0;
		return GPC_EXIT_MADE;
	}
	if (n_runs == 0 && !is_possible(report))
		return GPC_EXIT_USAGE;
	if (n_runs == 0) {
		put(report, gpc_html_head, gpc_html_head_end);
		fputs("{\"schema\":\"gpumem.html/1\",\"runs\":[", report->paper.out);
	}
	fputs(n_runs++ ? ",\n" : "", report->paper.out);
	gpc_html_put_run(report);
	return GPC_EXIT_MADE;
}
