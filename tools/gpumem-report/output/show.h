/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Quantities within sentences, as gpc_cell_write() writes them.
 *
 * Invariants  1 Each function returns one of eight static buffers in rotation: a text is valid until the eighth call
 *               after it.
 * Threads     One.
 * Failure     None.
 */
#ifndef GPC_REPORT_SHOW_H
#define GPC_REPORT_SHOW_H

#include "document/document.h"

/* "1.50 GiB"; "unknown" for GPUCACHE_UNKNOWN. */
const char *gpc_show_bytes(uint64_t bytes);
/* "1,610,612,736" */
const char *gpc_show_count(uint64_t count);
/* "850 ms", "12.3 s", "12 min 03 s", "3 h 05 min", "2 d 04 h" */
const char *gpc_show_duration(uint64_t ns);
/* "12.3 %"; "" if whole is 0 or part unknown */
const char *gpc_show_share(uint64_t part, uint64_t whole);
/* "2026-08-09 14:03:22", local time */
const char *gpc_show_time(uint64_t realtime_ns);
/* "2026-08-09T14:03:22Z" */
const char *gpc_show_rfc3339(uint64_t realtime_ns);

/* The local time of a moment, as ns since 1970 in UTC would be. */
uint64_t gpc_local_ns(uint64_t realtime_ns);

#endif
