/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is said on stderr about memory that a program did not get: labels, and words on lines of one width.
 *
 * Threads   One thread for one struct gpc_lines.
 * Failure   A line for which there is no room is left out; words that go on after the last line end with "...".
 * Limits    max_lines, and max_bytes with the lines' ends.
 */
#ifndef GPC_OOM_LINES_H
#define GPC_OOM_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

#define GPC_LINES_WIDTH 100u

struct gpc_lines {
	struct gpc_text *out;
	unsigned n_lines;
	size_t n_bytes;
	unsigned max_lines;
	size_t max_bytes;
};

/* Appends line[0 .. len), cut to the width, with '?' for anything but printable ASCII.  False if there was no room. */
bool gpc_lines_put(struct gpc_lines *lines, const char *line, size_t len);

/* Appends the label, then the words on as many lines as they need. */
void gpc_lines_put_words(struct gpc_lines *lines, const char *label, const char *words, size_t len);

#endif
