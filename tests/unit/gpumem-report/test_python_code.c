/* SPDX-License-Identifier: Apache-2.0 */
/* Names of Python code must be clean here, because binary exports bypass clean_stream.h. */
#include "tests/unit/unit.h"

#include "tests/unit/format/built.h"
#include "tools/gpumem-report/symbols/python_code.h"

TEST(names_have_no_control_characters)
{
	/* An escape; the same as one character of C1; an override of the direction; a byte that is no UTF-8. */
	static const char function[] = "f\033[2J\xc2\x9b\xe2\x80\xae(\xe9)";
	static const char file[] = "/tmp/\xc3\xa9ve/a\n\x07.py";
	struct recording_builder builder;
	struct gpc_recording *recording;
	struct gpc_report_codes *codes;
	const struct gpc_code *code;
	uint32_t id;

	builder_init(&builder);
	id = builder_code(&builder, function, file, 0, 7, "", 0);
	recording = open_built(&builder);
	codes = gpc_report_codes_create(recording);
	assert_non_null(codes);
	code = gpc_report_codes_find(codes, id);
	assert_non_null(code);
	assert_string_equal(code->function, "f?[2J??\?\?\?(?)");
	assert_string_equal(code->file, "/tmp/\xc3\xa9ve/a??.py");
	gpc_report_codes_destroy(codes);
	gpc_recording_close(recording);
}
