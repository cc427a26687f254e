/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code objects of Python frames: each one's names and line table are read once, however many frames
 * lie in it; a line is a binary search then.
 *
 * Threads   One.
 * Failure   NULL, names that are NULL, and first lines, where memory is short.
 */
#ifndef GPC_REPORT_CODES_H
#define GPC_REPORT_CODES_H

#include "format/recording.h"
#include "model/python_lines.h"

struct gpc_code {
	char *function; /* harmless to a terminal; valid as long as the codes are */
	char *file;
	bool is_library;
	bool is_read;
	uint32_t first_line;
	uint64_t text; /* the same for codes whose function and file read the same; not 0 */
	struct gpc_python_piece *pieces; /* by their end */
	size_t n_pieces;
};

struct gpc_report_codes; /* of one recording */

struct gpc_report_codes *gpc_report_codes_create(const struct gpc_recording *recording);
void gpc_report_codes_destroy(struct gpc_report_codes *codes);

/* The code object of that id; NULL: not recorded. */
const struct gpc_code *gpc_report_codes_find(struct gpc_report_codes *codes, uint32_t id);

/* The line of the instruction at byte `offset`, or the first one. */
uint32_t gpc_code_line(const struct gpc_code *code, uint32_t offset);

#endif
