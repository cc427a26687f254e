/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recordings that are no plain files: compressed ones, and standard input ("-").
 *
 * They are unpacked into memory of this process, and read from there.
 *
 * Threads     One.
 * Failure     As gpc_recording_open; *why says it for a person.
 * Limits      GPC_RECORDING_MAX_BYTES when unpacked.
 */
#ifndef GPC_REPORT_SOURCE_H
#define GPC_REPORT_SOURCE_H

#include "format/recording.h"

/* As gpc_recording_open; recording->path is `path`. */
GPC_MUST_CHECK enum gpc_status gpc_source_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why);

#endif
