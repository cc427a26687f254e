/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a view's document goes to: a stream, as JSON of schema gpumem.report/2 or as text of the terminal's width and
 * colours; and the parts that several views have.
 *
 * In JSON, names of sizes end in `_bytes`, and times are RFC 3339 in UTC.
 *
 * Threads     One.
 * Failure     Write errors stay in the stream, which main() checks at the end.
 */
#ifndef GPC_REPORT_PAGE_H
#define GPC_REPORT_PAGE_H

#include "tools/gpumem-report/report.h"

void gpc_page_init(struct gpc_document *doc, FILE *out, const struct gpc_options *options);

/* Begins the document: `schema`, `tool_version`, `view`, and `recording` if one is open. */
void gpc_page_begin(const struct gpc_report *report, const char *view);

/* In text, "train, pid 4711 on gpu07: killed", then `ending`; `started`, unless it is NULL; and the command line. */
void gpc_page_say_who(
	const struct gpc_report *report, enum gpc_ink ink, const char *ending, const char *started);

/* NOTES: what is damaged or torn, files without symbols, the library's warnings, what did not fit. */
void gpc_page_notes(const struct gpc_report *report);

/* The array `devices`, and an element of it. */
extern const struct gpc_section gpc_page_devices;
void gpc_page_open_device(struct gpc_document *doc, const struct gpucache_device *device);
/* The element's members. */
void gpc_page_tell_device(struct gpc_document *doc, const struct gpucache_device *device);

/* Process, time and state, as members of the object in progress. */
void gpc_page_identify(struct gpc_document *doc, const char *path,
	const struct gpucache_header *header, enum gpc_run_state state, uint64_t size);

/* A time of the recording's monotonic clock; 0: unknown. */
struct gpc_cell gpc_page_time(const struct gpc_report *report, uint64_t monotonic_ns);

/* clang-format off */
/* The first columns of every table of holders, and their cells; 0 blocks: unknown. */
#define GPC_HOLDER_COLUMNS \
	{ "live_bytes", "bytes", 12, GPC_SUMS }, { NULL, "share", 7, GPC_SUMS }, \
	{ "blocks", "blocks", 9, GPC_SUMS }, { NULL, "mean", 11, .from = 100 }
#define GPC_HOLDER_CELLS(bytes, total, n_blocks) \
	gpc_bytes(bytes), gpc_share(bytes, total), \
	gpc_count(gpc_unless_zero(n_blocks)), \
	(n_blocks) ? gpc_bytes((bytes) / (n_blocks)) : gpc_blank()

/* The bytes of point i of a history. */
#define GPC_POINT_COLUMNS \
	{ "requested_bytes" }, { "live_bytes" }, { "pending_bytes" }, { "reserved_bytes" }
#define GPC_POINT_CELLS(history, i) \
	gpc_bytes((history)->points[i].requested_bytes), gpc_bytes((history)->points[i].live_bytes), \
	gpc_bytes((history)->pending_bytes[i]), \
	gpc_bytes((history)->points[i].reserved_bytes)
/* clang-format on */

#endif
