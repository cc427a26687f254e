/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table parallel to the recording's code objects, filled on first use; the line of an offset is found by binary
 * search over the code's pieces.
 */
#include "tools/gpumem-report/symbols/python_code.h"

#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "model/libraries.h"
#include "names/short_names.h"

struct gpc_report_codes {
	const struct gpc_recording *recording;
	struct gpc_code *rows; /* parallel to recording->codes */
};

struct gpc_report_codes *gpc_report_codes_create(const struct gpc_recording *recording)
{
	struct gpc_report_codes *codes = gpc_new(1, sizeof *codes);

	codes->recording = recording;
	codes->rows = gpc_new(recording->n_codes, sizeof *codes->rows);
	return codes;
}

void gpc_report_codes_destroy(struct gpc_report_codes *codes)
{
	for (size_t i = 0; i < codes->recording->n_codes; i++) {
		free(codes->rows[i].function);
		free(codes->rows[i].file);
		free(codes->rows[i].pieces);
	}
	free(codes->rows);
	free(codes);
}

static char *copy_clean(const char *text, size_t size)
{
	char *copy = strndup(text, size);

	if (copy)
		gpc_text_clean(copy);
	return copy;
}

static uint64_t text_of(const struct gpc_code *code)
{
	uint64_t hash = GPC_HASH_START;

	if (code->function)
		hash = gpc_hash_bytes(hash, code->function, strlen(code->function) + 1);
	if (code->file)
		hash = gpc_hash_bytes(hash, code->file, strlen(code->file) + 1);
	return hash | 1;
}

static void read_code(struct gpc_code *code, const struct gpc_code_view *view)
{
	struct gpc_python_lines lines = gpc_python_lines_begin(
		view->python_version, view->lines, view->lines_size, view->first_line);
	struct gpc_python_piece piece;
	size_t room = 0;

	code->is_read = true;
	code->function = copy_clean(view->name, view->name_size);
	code->file = copy_clean(view->file, view->file_size);
	code->is_library =
		gpc_library_holds_code(view->file, view->file_size, view->name, view->name_size);
	code->first_line = view->first_line;
	code->text = text_of(code);
	while (gpc_python_lines_next(&lines, &piece)) {
		gpc_array_grow(&code->pieces, sizeof piece, code->n_pieces, &room);
		code->pieces[code->n_pieces++] = piece;
	}
}

const struct gpc_code *gpc_report_codes_find(struct gpc_report_codes *codes, uint32_t id)
{
	const struct gpc_recording *rec = codes->recording;
	size_t number = gpc_record_number(rec->codes, rec->n_codes, id);
	struct gpc_code_view view;

	if (number == rec->n_codes || !gpc_recording_find_code(rec, id, &view))
		return NULL;
	if (!codes->rows[number].is_read)
		read_code(&codes->rows[number], &view);
	return &codes->rows[number];
}

uint32_t gpc_code_line(const struct gpc_code *code, uint32_t offset)
{
	size_t at = GPC_ARRAY_COUNT(code->n_pieces, i, code->pieces[i].end <= offset);

	if (offset == GPC_PYTHON_NO_OFFSET)
		return code->first_line;
	return at < code->n_pieces && code->pieces[at].line ? code->pieces[at].line
							    : code->first_line;
}
