/* SPDX-License-Identifier: Apache-2.0 */
/* Folded stacks, for flamegraph.pl, inferno and speedscope: "GPU 0;main  train.c:9;load  vec.h:40 5242880". */
#include "tools/gpumem-report/export/export.h"

#include <string.h>

/* Prints a name with a comma for each semicolon, which separates names. */
static void print_name(FILE *out, char *name)
{
	for (char *at = name; (at = strchr(at, ';'));)
		*at = ',';
	fputs(name, out);
}

enum gpc_exit gpc_export_folded(struct gpc_report *report)
{
	struct gpc_export_samples samples;
	FILE *out = report->out;

	gpc_export_samples_create(&samples, report);
	for (size_t s = 0; s < samples.n; s++) {
		const struct gpc_export_sample *sample = &samples.rows[s];
		size_t depth = gpc_export_depth(report, sample);

		for (size_t i = 0; i < depth; i++) {
			GPC_TEXT(text, GPC_EXPORT_NAME_SIZE);

			gpc_export_name(report, sample, i, &text);
			print_name(out, text.buf);
			fputc(i + 1 < depth ? ';' : ' ', out);
		}
		fprintf(out, "%llu\n", (unsigned long long)sample->bytes);
	}
	gpc_export_samples_fini(&samples);
	return GPC_EXIT_MADE;
}
