/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The code objects of Python frames.  Names and line table of each are read once; finding a line is then a binary
 * search.
 *
 * Threads   One.
 * Failure   A name is NULL if there is no memory for it: a hostile file may claim any length.
 */
#ifndef GPC_REPORT_CODES_H
#define GPC_REPORT_CODES_H

#include "format/recording.h"
#include "model/python_lines.h"

struct gpc_code {
	char *function; /* without control characters; valid as long as the codes are */
	char *file;
	bool is_library;
	bool is_read;
	uint32_t first_line;
	uint64_t text;                   /* equal for codes with equal function and file; not 0 */
	struct gpc_python_piece *pieces; /* by their end */
	size_t n_pieces;
};

struct gpc_report_codes; /* of one recording */

struct gpc_report_codes *gpc_report_codes_create(const struct gpc_recording *recording);
void gpc_report_codes_destroy(struct gpc_report_codes *codes);

/* Returns the code object `id`, or NULL if it was not recorded. */
const struct gpc_code *gpc_report_codes_find(struct gpc_report_codes *codes, uint32_t id);

/* Returns the line of the instruction at byte `offset`, or the code's first line if the table has none. */
uint32_t gpc_code_line(const struct gpc_code *code, uint32_t offset);

#endif
