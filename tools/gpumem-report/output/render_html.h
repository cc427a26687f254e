/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A document as a page for a browser, without scripts: what text has, with each section's rows in a table.
 *
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_RENDER_HTML_H
#define GPC_REPORT_RENDER_HTML_H

#include "document/document.h"

extern const struct gpc_renderer gpc_render_html;

#endif
