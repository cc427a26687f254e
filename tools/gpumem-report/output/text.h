/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a report looks as text: its width, colours, sections, and numbers.
 *
 * A section has its name in the first nine columns, then its text:
 *
 *      BALANCE  GPU 0, when memory ran out
 *      |<- 9 ->|<------------ width - 9 ------------>|
 *
 * A line that is too long continues below the text of its last column.
 *
 * Invariants  1 A report says the same without colour.  2 Its own words are ASCII.
 *             3 The gpc_show_* functions return one of eight static buffers in rotation: a text is valid until the
 *               eighth call after it.
 *
 * Threads     One.
 * Failure     Write errors stay in the stream, which main() checks at the end.
 * Limits      The width is at least 60.
 */
#ifndef GPC_REPORT_PAPER_H
#define GPC_REPORT_PAPER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/rounded.h"

#define GPC_PAPER_INDENT 9

enum gpc_colour_mode {
	GPC_COLOUR_AUTO,
	GPC_COLOUR_ALWAYS,
	GPC_COLOUR_NEVER,
};

enum gpc_ink {
	GPC_INK_PLAIN,
	GPC_INK_BOLD,
	GPC_INK_DIM,
	GPC_INK_ALARM,
};

struct gpc_paper {
	FILE *out;
	int width;
	bool has_colour;
};

void gpc_paper_init(struct gpc_paper *paper, FILE *out, enum gpc_colour_mode mode);

/* The terminal's escape sequence for the ink; "" without colour. */
const char *gpc_paper_ink(const struct gpc_paper *paper, enum gpc_ink ink);

/* Prints an empty line, the section's name, and the first line of its text; name NULL: only a line of text. */
void gpc_paper_section(const struct gpc_paper *paper, const char *name, const char *format, ...)
	__attribute__((format(__printf__, 3, 4)));

/* Prints a line from the first column on. */
void gpc_paper_head(const struct gpc_paper *paper, const char *format, ...)
	__attribute__((format(__printf__, 2, 3)));

/* Prints a further line of the section. */
#define gpc_paper_line(paper, ...) gpc_paper_section(paper, NULL, __VA_ARGS__)

/* Prints a paragraph of a section, without an empty line above.  `name`, unless NULL, stands before its first line. */
void gpc_paper_wrap(const struct gpc_paper *paper, const char *name, const char *text);

/* "1.50 GiB"; "unknown" for GPUCACHE_UNKNOWN. */
const char *gpc_show_bytes(uint64_t bytes);
/* The same for a number that was rounded with others, so that they add up as printed (base/rounded.h). */
const char *gpc_show_rounded(struct gpc_rounded amount);
/* "1,610,612,736" */
const char *gpc_show_count(uint64_t count);
/* "850 ms", "12.3 s", "12 min 03 s", "3 h 05 min", "2 d 04 h" */
const char *gpc_show_duration(uint64_t ns);
/* "2026-08-09 14:03:22", local time */
const char *gpc_show_time(uint64_t realtime_ns);
/* "2026-08-09T14:03:22Z" */
const char *gpc_show_rfc3339(uint64_t realtime_ns);
/* "12.3 %"; "" if whole is 0 or part unknown */
const char *gpc_show_share(uint64_t part, uint64_t whole);
/* "12.3 %", from tenths of a percent */
const char *gpc_show_tenths(uint32_t tenths);

#endif
