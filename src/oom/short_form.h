/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The short form: at most 25 lines and 2,000 bytes on stderr that explain a failed request, fit to be pasted into an issue.
 *
 *	gpucache: OUT OF MEMORY on GPU 0 (physical 2, NVIDIA H200, 139.80 GiB) - pid 4711, python3
 *	WHY    fragmented (certain): 9.10 GiB of cached memory is free, its largest piece is ...
 *	HELD   30.10 GiB activations (Block.forward model.py:88), ...      of PyTorch: what the memory is for
 *	SHORT  by 1.70 GiB: ...
 *	TRY    GPUCACHE_CONF=...
 *	WHERE    123.90 GiB  88.6 %  held by the program          the balance sheet, lines of zero left out
 *	       =  139.80 GiB 100.0 %  total
 *	HOLD      56.20 GiB    1204 blocks  load_weights         the three biggest holders
 *	FULL   gpumem-report oom /path/of/the/recording
 *
 * Invariants
 *   1 At most GPC_SHORT_LINES lines, all printable ASCII, of at most GPC_SHORT_WIDTH characters, but for FULL; at
 *     most GPC_SHORT_BYTES in all.
 *   2 FULL is a line that a shell takes: if the recording's path is very long or cannot be pasted, the pid replaces it.
 *   3 Only measurements are printed: no arguments, no environment, nothing of other users beyond what
 *     this user may see.
 *
 * Threads   A pure function, except for the caller's describer.
 * Failure   None; text is truncated to fit.  GPC_SHORT_SIZE always suffices.
 * Limits    One failed request.  The caller decides when to print it.
 */
#ifndef GPC_OOM_SHORT_FORM_H
#define GPC_OOM_SHORT_FORM_H

#include <stdint.h>

#include "base/text.h"
#include "gpucache_format.h"
#include "oom/holder_rows.h"
#include "oom/lines.h"
#include "why/evidence.h"
#include "why/why.h"

#define GPC_SHORT_LINES 25u
#define GPC_SHORT_WIDTH GPC_LINES_WIDTH
#define GPC_SHORT_BYTES 2000u
#define GPC_SHORT_SIZE  (GPC_SHORT_BYTES + 1)

struct gpc_short_form {
	const struct gpucache_oom *oom;        /* with its verdict */
	const char *conf;                      /* GPUCACHE_CONF as it is set; may be NULL */
	const struct gpc_describer *describer; /* may be NULL */
	const struct gpc_evidence *evidence;   /* for what PyTorch's memory is; may be NULL */
	int physical;                          /* nvidia-smi's index of the GPU; -1: unknown */
	const char *gpu_name;                  /* may be NULL or empty, as all texts here */
	const char *program;                   /* its name, not its arguments */
	const char *recording;                 /* path; NULL: there is no recording */
	const char *report;                    /* what runs gpumem-report */
	uint32_t pid;
	int32_t rank; /* -1: none */
	int32_t world_size;
};

/*
 * What to write before a setting to add to GPUCACHE_CONF: nothing, the options that it has, or "$GPUCACHE_CONF," if they
 * are long.
 */
void gpc_conf_prefix(const char *conf, char *buf, size_t size);

/* Appends the whole short form, each line ended by a newline, and returns what it says is the cause. */
struct gpc_answer gpc_short_form_write(const struct gpc_short_form *form, struct gpc_text *text);

#endif
