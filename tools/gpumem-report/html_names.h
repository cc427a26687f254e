/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of a page, each once: frames, stacks, ranges.
 *
 * A writer asks here for a name's number; the lists of names are printed after the data.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_HTML_NAMES_H
#define GPC_REPORT_HTML_NAMES_H

#include "tools/gpumem-report/export.h"

struct gpc_html_names; /* frames, stacks and ranges of one recording */

struct gpc_html_names *gpc_html_names_create(const struct gpc_report *report);
void gpc_html_names_destroy(struct gpc_html_names *names);

/* The number of a sample's stack. */
unsigned gpc_html_names_stack(struct gpc_html_names *names, const struct gpc_export_sample *sample);

/* The number of a range (tag). */
unsigned gpc_html_names_tag(struct gpc_html_names *names, uint32_t tag);

/*
 * The fields `frames`: [name, flags]; `stacks`: [[call site, its caller, ...], the library function called, 1 for a
 * context or a module, [frames, outermost first]]; and `tags`.
 */
void gpc_html_names_put(struct gpc_html_names *names, FILE *out);

/* Writes `text` as a JSON string that is safe within <script>. */
void gpc_html_put_text(FILE *out, const char *text);

/* Writes JSON so that it is safe within <script>. */
void gpc_html_put_json(FILE *out, const char *json);

#endif
