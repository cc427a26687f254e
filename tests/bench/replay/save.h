/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPC_BENCH_SAVE_H
#define GPC_BENCH_SAVE_H

#include "tools/replay/trace.h"

/* Writes allocations and frees as a log of RMM, gzipped if `path` ends in .gz.  Returns false with errno on failure. */
bool gpc_trace_save(const struct gpc_trace *trace, const char *path);

#endif
