/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a tool prints passes here: whatever a recording, a file's name or a symbol has in it, the terminal,
 * the log and the JSON reader get UTF-8 without controls (gpc_text_clean), lines and tabs excepted.
 *
 *      printf --> stdout, a stream of ours --> clean --> write(1)
 *
 * Threads   As stdio's.
 * Failure   The stream's own, as of any other.
 */
#ifndef GPC_CLEAN_STREAM_H
#define GPC_CLEAN_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Standard output and error become such streams. */
void gpc_clean_standard(void);

/* One onto `fd`, which it closes in the end but for 0 to 2; NULL with errno. */
FILE *gpc_clean_stream(int fd);

/* From now on all of them let colours (ESC [ numbers m) through, or none. */
void gpc_clean_let_colours(bool lets);

#endif
