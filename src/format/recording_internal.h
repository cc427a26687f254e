/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the parts of the reader: recording.c opens and validates, recording_append.c walks the append-only
 * regions, recording_modules.c finds the module of an address, recording_views.c reads typed records,
 * recording_pages.c detects losses.
 *
 * Threads, Failure, Limits: as recording.h.
 */
#ifndef GPC_FORMAT_RECORDING_INTERNAL_H
#define GPC_FORMAT_RECORDING_INTERNAL_H

#include "base/io.h"
#include "format/recording.h"

/* Adds a problem of a region to recording->problems; the text is truncated to fit. */
void gpc_recording_note(struct gpc_recording *recording, enum gpucache_region_kind kind,
	const char *format, ...) __attribute__((format(__printf__, 3, 4)));

/* NUL-terminates a string of the file, and replaces what could control a terminal (gpc_text_clean). */
void gpc_recording_clean(char *text, size_t size);

/* recording_pages.c: notes a problem for each region with lost pages. */
void gpc_recording_check_pages(struct gpc_recording *recording, int fd);

/* recording_modules.c: computes the disjoint ranges of modules[0 .. n_modules). */
enum gpc_status gpc_recording_index_modules(struct gpc_recording *recording);

/*
 * recording_append.c: indexes the records of STACKS, CODES, TAGS and MODULES, each up to the first damaged record.
 * GPC_NO_METADATA: the file, which is untrusted, demands more memory than there is.
 */
enum gpc_status gpc_recording_index(struct gpc_recording *recording);

#endif
