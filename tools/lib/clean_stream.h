/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleans all output of a tool.  A recording, a file name or a symbol may contain any bytes; a clean stream writes UTF-8
 * in which a question mark replaces each control character (gpc_text_clean).  Newlines and tabs pass.
 *
 *      printf --> stdout, replaced by a clean stream --> clean --> write(1)
 *
 * Threads   Any; stdio locks the stream.
 * Failure   As of any stream: the calls of stdio return EOF, with errno of write().
 */
#ifndef GPC_CLEAN_STREAM_H
#define GPC_CLEAN_STREAM_H

#include <stdbool.h>
#include <stdio.h>

/* Writes text[0 .. size) to `fd` unchanged; false with errno on failure. */
bool gpc_write_all(int fd, const char *text, size_t size);

/* Replaces `stdout` and `stderr` by clean streams; keeps a stream that cannot be replaced. */
void gpc_clean_standard(void);

/* Opens a clean stream that writes to `fd`; NULL with errno on failure.  fclose closes `fd` unless it is 0, 1 or 2. */
FILE *gpc_clean_stream(int fd);

/* Decides whether all clean streams pass colour sequences (ESC [ numbers m) from now on; at first they do not. */
void gpc_clean_let_colours(bool lets);

#endif
