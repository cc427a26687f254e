/* SPDX-License-Identifier: Apache-2.0 */
/* The text of -h, with the tables of commands and filters. */
#include "tools/gpumem-report/arguments.h"
#include "tools/gpumem-report/export/export.h"
#include "tools/gpumem-report/holders/filter.h"

#include <stdio.h>

static const char before[] =
	"gpumem-report - who holds the GPU memory of a run, alive, ended or killed\n"
	"\n"
	"Usage: gpumem-report [COMMAND] [OPTIONS] [FILE|DIR|PID|-]...\n"
	"       A FILE may be compressed (.gz); - is standard input.\n"
	"\n"
	"Examples:\n"
	"  gpumem-report                     the last run that failed, else the last: verdict\n"
	"  gpumem-report 4711                the same for process 4711\n"
	"  gpumem-report oom                 the last failed request, in full\n"
	"  gpumem-report oom 2 run.gpucache  failed request 2 of that recording\n"
	"  gpumem-report --at=peak           who held the peak\n"
	"  gpumem-report leaks -n 3          the three largest leaking stacks\n"
	"  gpumem-report --fail-on=oom,leak  for scripts: exit code 1 if there was either\n"
	"\n"
	"Commands:";

static const char options_text[] =
	"\n"
	"Options:\n"
	"  -d, --device N           only this GPU\n"
	"  -n, --limit N            rows of tables\n"
	"      --at=MOMENT          holders at the end, peak or oom\n"
	"      --json               for programs\n"
	"      --html               fit, sweep, cure: as a page for a browser\n"
	"      --color=WHEN         auto, always or never\n"
	"  -o, --output FILE        write there; -f, --force overwrites it\n"
	"      --fail-on=oom,leak   exit code 1 if this recording, or any in a DIR, has one\n"
	"      --bottom-up          tree: allocating functions first, their callers below\n"
	"      --format=NAME        export: one of those below\n"
	"      --query=COLUMN[,COLUMN]...  csv: pid, gpu, live, reserved, n_oom, ...\n"
	"      --watch=TIME         live, export: repeat every 15s, 500ms, ...\n"
	"      --once               live: one reading, as text\n"
	"      --on=GPU             fit: does it fit on rtx4090, on 24GiB?  Exit code 1: no\n"
	"      --progress           fit: the steps so far, and nothing more\n"
	"      --next               sweep, cure: the runs that are missing, and nothing more\n"
	"      --trials DIR         cure: the runs that gpucache-run --cure has made\n"
	"      --ended=HOW          fit: stopped, interrupted, late, grown, or the exit status\n"
	"      --run=ID             oom: the first three that failed in a gpucache-run --wait\n"
	"      --sysroot DIR        find the recorded machine's files below DIR\n"
	"      --debug-path DIR[:DIR]  files with symbols: DIR/.build-id/xx/yyyy.debug,\n"
	"                           DIR/PATH[.debug], DIR/NAME[.debug]\n"
	"      --no-symbols         open no file named by a recording: the default for other\n"
	"                           users' recordings; --symbols opens them\n"
	"  -h, --help               this text; -V, --version\n"
	"\n"
	"Formats of export:";

static const char filters_text[] = "\nFilters, for holders, leaks and --fail-on=leak:";

static const char behind[] =
	"\n"
	"Exit codes: 0 done, 1 --fail-on found one, 2 wrong usage, 3 nothing found,\n"
	"            4 damaged (what could be read was printed), 5 cannot read or write;\n"
	"            the highest of several\n"
	"\n"
	"For a DIR: the recording that ran out of memory first, else the newest that used a\n"
	"GPU.  Without FILE, DIR or PID: the same for the newest job or run that failed, in\n"
	"the directory of $GPUCACHE_OUTPUT, /dev/shm/gpucache-UID, $XDG_RUNTIME_DIR/gpucache,\n"
	"and ${TMPDIR:-/tmp}/gpucache-UID.  With oom, a number that is no recorded pid is\n"
	"the number of the failure.";

void gpc_help_print(void)
{
	puts(before);
	for (size_t i = 0; i < GPC_N_COMMANDS; i++)
		printf("  %-9s %s\n", gpc_commands[i].name, gpc_commands[i].help);
	puts(options_text);
	gpc_export_print_formats();
	puts(filters_text);
	for (size_t i = 0; i < GPC_N_FILTERS; i++) {
		const struct gpc_filter_row *row = &gpc_filter_rows[i];
		int used = printf("      --%s=%s", row->name, row->value);

		printf("%*s  %s\n", used < 25 ? 25 - used : 0, "", row->help);
	}
	puts(behind);
}
