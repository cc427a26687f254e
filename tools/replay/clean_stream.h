/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleans all output of a tool: whatever a recording, a file name or a symbol contains, the terminal, the log and the
 * JSON reader get UTF-8 without control characters (gpc_text_clean), except newlines and tabs.
 *
 *      printf --> stdout, a stream of ours --> clean --> write(1)
 *
 * Threads   Those of stdio.
 * Failure   That of any stream.
 */
#ifndef GPC_CLEAN_STREAM_H
#define GPC_CLEAN_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Writes text[0 .. size) to `fd` unchanged; false with errno on failure. */
bool gpc_write_all(int fd, const char *text, size_t size);

/* Makes standard output and standard error such streams. */
void gpc_clean_standard(void);

/* Returns such a stream for `fd`, NULL with errno on failure.  fclose closes `fd` unless it is 0, 1 or 2. */
FILE *gpc_clean_stream(int fd);

/* Whether all such streams pass colours (ESC [ numbers m) from now on. */
void gpc_clean_let_colours(bool lets);

#endif
