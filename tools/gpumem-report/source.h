/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens recordings that are not plain files: compressed ones and standard input ("-"), read into memory.
 *
 * Threads     One.
 * Failure     As gpc_recording_open; *why has the message.
 * Limits      GPC_RECORDING_MAX_BYTES uncompressed.
 */
#ifndef GPC_REPORT_SOURCE_H
#define GPC_REPORT_SOURCE_H

#include "format/recording.h"

/* As gpc_recording_open; recording->path is `path`. */
GPC_MUST_CHECK enum gpc_status gpc_source_open(
	const char *path, struct gpc_recording **ret_recording, struct gpc_text *why);

#endif
