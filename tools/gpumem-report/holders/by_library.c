/* SPDX-License-Identifier: Apache-2.0 */
/* The library of a stack is the module of its innermost frame outside the driver, the runtime and our own library. */
#include "tools/gpumem-report/holders/by_library.h"

#include <string.h>

#include "model/libraries.h"
#include "model/torch.h"
#include "tools/gpumem-report/output/page.h"

static void add_name(const char *path, const struct gpc_library_row *row, struct gpc_text *ret_text)
{
	const char *name = row ? row->name : gpc_library_package(path) ?: gpc_base_name(path);

	gpc_text_add_clean(ret_text, name, row ? strlen(name) : strcspn(name, "/"));
}

void gpc_library_name(
	const struct gpc_recording *recording, uint32_t stack, struct gpc_text *ret_text)
{
	struct gpc_stack_view view;

	if (stack == 0) {
		gpc_text_add(ret_text, "(no stack was taken)");
		return;
	}
	if (!gpc_recording_find_stack(recording, stack, &view)) {
		gpc_text_add(ret_text, "(its stack was not recorded)");
		return;
	}
	for (unsigned i = 0; i < view.n_native; i++) {
		const struct gpc_library_row *row;
		struct gpc_module_view module;
		size_t number;

		if (!gpc_recording_find_module(recording, view.native[i] - 1, &number, &module))
			continue;
		row = gpc_library_row_of(module.path);
		if (row && !row->name)
			continue;
		add_name(module.path, row, ret_text);
		return;
	}
	gpc_text_add(ret_text, "(unknown)");
}

void gpc_libraries_create(struct gpc_groups *libraries, const struct gpc_report *report,
	const struct gpc_holdings *holdings)
{
	*libraries = (struct gpc_groups){ .total_bytes = holdings->total_bytes };
	for (size_t i = 0; i < holdings->n; i++) {
		GPC_TEXT(text, 64);

		if (holdings->rows[i].kind && !holdings->rows[i].id)
			gpc_text_add(&text, "%s", GPC_THE_DRIVER);
		else
			gpc_library_name(report->recording, holdings->rows[i].id, &text);
		gpc_groups_add(libraries, text.buf, holdings->rows[i].bytes,
			holdings->rows[i].n_blocks, 0);
	}
	if (holdings->torch_bytes)
		gpc_groups_add(libraries, gpc_framework_words(holdings->framework)->name,
			holdings->torch_bytes, 0, 0);
	if (holdings->refused_bytes)
		gpc_groups_add(libraries, GPC_THE_DRIVER, holdings->refused_bytes, 0, 0);
	if (holdings->rest_bytes)
		gpc_groups_add(libraries, "(not listed)", holdings->rest_bytes, 0, 0);
	gpc_groups_sort(libraries);
}

void gpc_libraries_show(const struct gpc_groups *libraries, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = { GPC_HOLDER_COLUMNS, { "library", "library" } };
	static const struct gpc_section section = { "libraries", "LIBRARY", GPC_COLUMNS(columns),
		5 };
	const bool is_one = libraries->n == 1;

	gpc_document_open(doc, &section);
	if (libraries->n > 1)
		gpc_document_say(doc, "the same %s by the library that asked for them",
			gpc_show_bytes(libraries->total_bytes));
	else if (is_one && libraries->rows[0].name[0] != '(')
		gpc_document_say(doc, "all of it was asked for by %s", libraries->rows[0].name);
	if (!is_one || gpc_document_is_whole(doc))
		gpc_groups_show(libraries, doc);
	gpc_document_close(doc);
}
