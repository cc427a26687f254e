/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds memory, by stack: what every table of holders is made of.
 *
 *      live blocks -----+
 *                       +--> holdings --+--> sites       by call site
 *      an OOM's list ---'               '--> libraries   by the library that asked the driver
 *
 * Invariants  1 The rows, `torch_bytes` and `rest_bytes` add up to `total_bytes`.  2 They are of one device, unless
 *               is_of_all_gpus says otherwise or all were asked for.
 * Threads     One.
 * Failure     GPC_NO_METADATA.
 * Limits      An OOM lists its biggest stacks only; the others are rest_bytes.
 */
#ifndef GPC_REPORT_HOLDINGS_H
#define GPC_REPORT_HOLDINGS_H

#include "tools/gpumem-report/moment.h"
#include "tools/gpumem-report/rows.h"

struct gpc_holdings {
	struct gpc_row *rows; /* ordered by GPU, stack and kind */
	size_t n;
	uint64_t total_bytes;
	uint64_t rest_bytes;  /* of holders that the recording does not list */
	uint64_t torch_bytes; /* of PyTorch's cache, in no tensor */
	bool has_torch;       /* PyTorch allocated on the device */
	bool is_of_all_gpus;  /* an old recording's list, of a process that used several */
};

/*
 * From the list that the library made when memory ran out.  It names stacks only; those of a
 * context or module are known by its block, where that was not given back since.
 */
GPC_MUST_CHECK enum gpc_status gpc_holdings_from_oom(struct gpc_holdings *holdings,
	const struct gpc_report *report, const struct gpucache_oom *oom);

/*
 * From the blocks of one device, or of all where ordinal is -1, that are live now or were at
 * the end.
 */
GPC_MUST_CHECK enum gpc_status gpc_holdings_from_live(
	struct gpc_holdings *holdings, const struct gpc_report *report, int32_t ordinal);

/* From the list of a peak. */
GPC_MUST_CHECK enum gpc_status gpc_holdings_from_peak(struct gpc_holdings *holdings,
	const struct gpc_report *report, const struct gpucache_peak *peak);

/* Whatever the moment is; none where it is not there. */
GPC_MUST_CHECK enum gpc_status gpc_holdings_at(struct gpc_holdings *holdings,
	const struct gpc_report *report, const struct gpc_moment *moment);

void gpc_holdings_fini(struct gpc_holdings *holdings);

/* Both tables, under the section that the caller began; for JSON, as fields of `object`. */
void gpc_holdings_print(
	const struct gpc_holdings *holdings, const struct gpc_report *report, unsigned limit);
void gpc_holdings_json(const struct gpc_holdings *holdings, const struct gpc_report *report,
	struct json_object *object);

#endif
