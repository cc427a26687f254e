/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the reader share: recording.c opens and checks, recording_append.c walks the
 * append-only regions, recording_modules.c finds the module of an address, recording_views.c gives typed records, recording_pages.c and recording_agree.c
 * miss what is lost.
 *
 * Threads, Failure, Limits: as recording.h.
 */
#ifndef GPC_FORMAT_RECORDING_INTERNAL_H
#define GPC_FORMAT_RECORDING_INTERNAL_H

#include "base/io.h"
#include "format/recording.h"

/* Notes a problem; text is cut to fit. */
void gpc_recording_note(struct gpc_recording *recording, enum gpucache_region_kind kind,
	const char *format, ...) __attribute__((format(__printf__, 3, 4)));

/* Ends what claims to be a string, and makes it harmless to a terminal. */
void gpc_recording_clean(char *text, size_t size);

/* recording_pages.c: notes the regions that have lost pages. */
void gpc_recording_check_pages(struct gpc_recording *recording, int fd);

/* recording_agree.c: notes the regions that others say more of than is there. */
void gpc_recording_check_agreement(struct gpc_recording *recording);

/* recording_modules.c: cuts the ranges of modules[0 .. n_modules). */
GPC_MUST_CHECK enum gpc_status gpc_recording_index_modules(struct gpc_recording *recording);

/*
 * Finds all records of STACKS, CODES, TAGS and MODULES; what is damaged ends the walk of that
 * region.
 */
GPC_MUST_CHECK enum gpc_status gpc_recording_index(struct gpc_recording *recording);

#endif
