/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in a page of `gpumem-report html`: frames, stacks, ranges.  Each is stored once, in a list.
 *
 * The data of the page have numbers of names, which these functions return; gpc_html_names_show() writes the lists
 * afterwards.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_HTML_NAMES_H
#define GPC_REPORT_HTML_NAMES_H

#include "tools/gpumem-report/export/export.h"

struct gpc_html_names; /* frames, stacks and ranges of one recording */

struct gpc_html_names *gpc_html_names_create(const struct gpc_report *report);
void gpc_html_names_destroy(struct gpc_html_names *names);

/* Returns the number of a sample's stack. */
unsigned gpc_html_names_stack(struct gpc_html_names *names, const struct gpc_export_sample *sample);

/* Returns the number of a range, by the id of its tag. */
unsigned gpc_html_names_tag(struct gpc_html_names *names, uint32_t tag);

/*
 * Adds the members `frames`, `stacks` and `tags` to a document that goes to a FILE.  An element of `frames` is [name,
 * flags].  One of `stacks` is [[call site, " < its caller", ...], the library's function that the site called, 1 for a
 * context or a module, else 0, [frames, outermost first]].
 */
void gpc_html_names_show(struct gpc_html_names *names, struct gpc_document *doc);

/* Writes JSON to the FILE `self`.  Within <script> only `</script` and `<!--` are special: escapes each `<`. */
void gpc_html_put(void *self, const char *bytes, size_t n);

#endif
