/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each address is resolved once, and kept in `found`.  A module's file is opened at the first lookup in the module.
 * libdw reads debug information; functions.c finds names in the symbol table, and elf_files.c the files.
 */
#include "tools/gpumem-report/symbols/symbolize.h"

#include <dlfcn.h>
#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/memory.h"
#include "model/libraries.h"
#include "tools/gpumem-report/report.h"
#include "tools/gpumem-report/symbols/functions.h"
#include "tools/gpumem-report/symbols/pack_file.h"
#include "tools/lib/table.h"

typedef char *(*demangle_function)(const char *name, char *buf, size_t *size, int *status);

/* The most bytes of a name; those of templates may have some thousand. */
#define MOST_NAME 16384

struct object {
	const struct gpc_symbols *symbols;
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: missing, or another build */
	struct gpc_functions functions;
	bool tried;
	bool is_wanted; /* there is no file, and an address in it was looked up */
};

/* The symbols of an address. */
struct found {
	uint64_t address;
	struct gpc_symbol_list list;
	UT_hash_handle hh;
};

struct gpc_symbols {
	const struct gpc_recording *recording;
	struct gpc_places places;
	struct object *objects; /* one per recorded module */
	demangle_function demangle;
	bool is_wanted; /* the files that the recording names may be opened: is_believed() */
	struct json_object *pack; /* from gpc_pack_open; NULL: none */
	struct found *found;
};

/* Finds a debug file.  libdw's own search would open whatever the debug link names, and hang if that is a pipe. */
static int find_debug(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
	const char *file, const char *link, GElf_Word link_sum, char **ret_path)
{
	const struct object *object = *userdata;
	size_t number = (size_t)(object - object->symbols->objects);
	struct gpc_module_view view;

	if (gpc_recording_read_module(object->symbols->recording, number, &view)) {
		struct gpc_object_file found =
			gpc_object_find_debug(&object->symbols->places, &view, link);

		if (found.fd >= 0) {
			*ret_path = strdup(found.path);
			return found.fd;
		}
	}
	(void)module;
	(void)name;
	(void)base;
	(void)file;
	(void)link_sum;
	return -1;
}

/* libdw asks for sections only of relocatable objects, which no process maps: only a forged file gets here. */
static int find_no_section(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
	const char *section, GElf_Word number, const GElf_Shdr *header, Dwarf_Addr *ret_address)
{
	(void)module, (void)userdata, (void)name, (void)base, (void)section, (void)number,
		(void)header, (void)ret_address;
	errno = ENOTSUP;
	return -1;
}

/* libdw requires all three.  It never calls find_elf, because open_object() gives it the file of each module. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_debug,
	.section_address = find_no_section,
};

/* True if files that the recording names may be opened: by default if the recording is this user's or root's. */
static bool is_believed(const struct gpc_recording *recording, enum gpc_symbols_of symbols_of)
{
	static bool is_said;
	GPC_TEXT(text, 64);

	if (symbols_of != GPC_SYMBOLS_OF_OURS || !gpc_recording_is_of_others(recording->owner))
		return symbols_of != GPC_SYMBOLS_OF_NONE;
	if (!is_said) {
		gpc_owner_add(recording->owner, &text);
		gpc_complain(
			"%s belongs to %s: no file it names is opened for symbols; --symbols opens "
			"them",
			recording->path, text.buf);
	}
	is_said = true;
	return false;
}

struct gpc_symbols *gpc_symbols_create(
	const struct gpc_recording *recording, const struct gpc_places *places)
{
	struct gpc_symbols *symbols = gpc_new(1, sizeof *symbols);
	void *library;

	symbols->recording = recording;
	symbols->places = *places;
	symbols->is_wanted = is_believed(recording, places->symbols_of);
	symbols->pack = symbols->is_wanted ? gpc_pack_open(recording) : NULL;
	symbols->objects = gpc_new(recording->n_modules, sizeof *symbols->objects);
	/* Keeps libdw from asking debuginfod servers, for which the report would wait. */
	setenv("DEBUGINFOD_URLS", "", 1);
	/* The C++ library demangles names.  Without it, names stay mangled. */
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		*(void **)&symbols->demangle = dlsym(library, "__cxa_demangle");
	return symbols;
}

static void list_fini(struct gpc_symbol_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		free(list->rows[i].function);
		free(list->rows[i].file);
	}
	free(list->rows);
}

void gpc_symbols_destroy(struct gpc_symbols *symbols)
{
	struct found *found, *next;

	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->recording->n_modules; i++) {
		gpc_functions_fini(&symbols->objects[i].functions);
		if (symbols->objects[i].dwfl)
			dwfl_end(symbols->objects[i].dwfl);
	}
	HASH_ITER (hh, symbols->found, found, next) {
		HASH_DEL(symbols->found, found);
		list_fini(&found->list);
		free(found);
	}
	json_object_put(symbols->pack);
	free(symbols->objects);
	free(symbols);
}

static void open_object(struct object *object, const struct gpc_module_view *view)
{
	struct gpc_object_file file = { .fd = -1 };
	void **userdata;

	if (object->symbols->is_wanted)
		file = gpc_object_find(&object->symbols->places, view);
	if (file.fd < 0) {
		if (file.differs && gpc_library_kind_of(view->path) != GPC_LIBRARY_OURS)
			gpc_complain("%s: build id differs from the recorded one; not used",
				gpc_base_name(view->path));
		return;
	}
	object->dwfl = dwfl_begin(&callbacks);
	if (!object->dwfl) {
		close(file.fd);
		return;
	}
	dwfl_report_begin(object->dwfl);
	/* If this succeeds, libdw closes the descriptor at the end. */
	object->module = dwfl_report_elf(
		object->dwfl, "object", file.path, file.fd, view->module.bias, true);
	if (!object->module)
		close(file.fd);
	dwfl_report_end(object->dwfl, NULL, NULL);
	if (!object->module)
		return;
	dwfl_module_info(object->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = object;
	gpc_functions_read(&object->functions, object->module);
}

/* Returns the object of the module that was at this address, and opens its file at first use; NULL: no module. */
static struct object *object_at(
	struct gpc_symbols *symbols, uint64_t address, struct gpc_module_view *ret_view)
{
	struct object *object;
	size_t number;

	if (!gpc_recording_find_module(symbols->recording, address, &number, ret_view))
		return NULL;
	object = &symbols->objects[number];
	if (!object->tried) {
		object->symbols = symbols;
		object->tried = true;
		open_object(object, ret_view);
	}
	return object;
}

static char *clean(char *text)
{
	if (text)
		gpc_text_clean(text);
	return text;
}

static char *copy_name(const struct gpc_symbols *symbols, const char *name)
{
	int status = -1;
	char *demangled = NULL;

	if (!name)
		return NULL;
	if (symbols->demangle && name[0] == '_' && name[1] == 'Z' && strlen(name) < MOST_NAME)
		demangled = symbols->demangle(name, NULL, NULL, &status);
	return clean(demangled ? demangled : strndup(name, MOST_NAME));
}

/*
 * Finds the functions that contain an address, innermost first: the inlined ones, and last the one they are inlined
 * into.  Returns their number; the caller frees *ret_functions.
 */
static size_t find_functions(Dwarf_Die *unit, Dwarf_Addr address, Dwarf_Die **ret_functions)
{
	Dwarf_Die *scopes = NULL;
	Dwarf_Die *nested = NULL;
	size_t n_functions = 0;
	int n = 0;

	/* dwarf_getscopes omits the scopes around an inlined call; dwarf_getscopes_die has them. */
	if (dwarf_getscopes(unit, address, &scopes) > 0)
		n = dwarf_getscopes_die(&scopes[0], &nested);
	free(scopes);
	for (int i = 0; i < n; i++) {
		int tag = dwarf_tag(&nested[i]);

		if (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_subprogram)
			nested[n_functions++] = nested[i];
		if (tag == DW_TAG_subprogram)
			break;
	}
	*ret_functions = nested;
	return n_functions;
}

static const char *name_of(Dwarf_Die *function)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute))
		return dwarf_formstring(&attribute);
	return dwarf_diename(function);
}

static void set_place(struct gpc_symbol *symbol, const char *file, Dwarf_Word line)
{
	if (!file || line == 0 || line > INT32_MAX)
		return;
	symbol->file = clean(strndup(file, MOST_NAME));
	symbol->line = (uint32_t)line;
}

/* Sets file and line of `caller` to where it calls `inlined`. */
static void set_call(struct gpc_symbol *caller, Dwarf_Die *unit, Dwarf_Die *inlined)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word file = 0;
	Dwarf_Word line = 0;
	size_t n_files;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &file) == 0 &&
		dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &line) == 0 &&
		dwarf_getsrcfiles(unit, &files, &n_files) == 0 && file < n_files)
		set_place(caller, dwarf_filesrc(files, file, NULL, NULL), line);
}

/* Sets the names of the rows, which are `functions` of `unit`, and the places of all but the innermost. */
static void name_functions(const struct gpc_symbols *symbols, struct gpc_symbol_list *list,
	Dwarf_Die *unit, Dwarf_Die *functions)
{
	for (size_t i = 0; i < list->n; i++) {
		if (!list->rows[i].function)
			list->rows[i].function = copy_name(symbols, name_of(&functions[i]));
		if (i > 0)
			set_call(&list->rows[i], unit, &functions[i - 1]);
	}
}

static void name_rows(const struct gpc_symbols *symbols, const struct object *object, uint64_t call,
	struct gpc_symbol_list *list)
{
	Dwarf_Die *functions = NULL;
	Dwarf_Addr bias = 0;
	Dwarf_Die *unit = dwfl_module_addrdie(object->module, call, &bias);
	size_t n = unit ? find_functions(unit, call - bias, &functions) : 0;
	Dwfl_Line *line = dwfl_module_getsrc(object->module, call);
	struct gpc_symbol *rows = n > 1 ? gpc_new(n, sizeof *rows) : NULL;
	int number = 0;

	if (rows) {
		for (size_t i = 0; i < n; i++)
			rows[i] = list->rows[0];
		free(list->rows);
		list->rows = rows;
		list->n = n;
	}
	/* The compiled function gets its name in the symbol table, which the linker and other tools use. */
	list->rows[list->n - 1].function =
		copy_name(symbols, gpc_functions_find(&object->functions, call));
	if (line) {
		const char *file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);

		set_place(&list->rows[0], file, number > 0 ? (Dwarf_Word)number : 0);
	}
	if (n == list->n)
		name_functions(symbols, list, unit, functions);
	free(functions);
}

/* Sets module and offset of each row; view NULL: the address is in no recorded module. */
static void set_module(
	struct gpc_symbol_list *list, uint64_t address, const struct gpc_module_view *view)
{
	for (size_t i = 0; i < list->n; i++) {
		list->rows[i].module = view ? view->path : NULL;
		list->rows[i].offset =
			view ? address - view->module.bias : GPUCACHE_FRAME_ADDRESS(address);
	}
}

static struct gpc_symbol_list look_up(struct gpc_symbols *symbols, uint64_t address)
{
	struct gpc_symbol_list list = gpc_pack_find(symbols->pack, address);
	uint64_t call = address - 1;
	struct gpc_module_view view;
	struct object *object;
	size_t number;

	if (list.n) {
		bool is_known = gpc_recording_find_module(symbols->recording, call, &number, &view);

		set_module(&list, address, is_known ? &view : NULL);
		return list;
	}
	list = (struct gpc_symbol_list){ .rows = gpc_new(1, sizeof *list.rows), .n = 1 };
	object = object_at(symbols, call, &view);
	set_module(&list, address, object ? &view : NULL);
	if (!object)
		return list;
	if (object->module)
		name_rows(symbols, object, call, &list);
	else
		object->is_wanted = true;
	return list;
}

struct gpc_symbol_list *gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address)
{
	static struct gpc_symbol_list none;
	struct found *found;

	if (!address)
		return &none;
	HASH_FIND(hh, symbols->found, &address, sizeof address, found);
	if (!found) {
		found = gpc_new(1, sizeof *found);
		found->address = address;
		found->list = look_up(symbols, address);
		HASH_ADD(hh, symbols->found, address, sizeof address, found);
	}
	return &found->list;
}

bool gpc_symbols_next_missing(const struct gpc_symbols *symbols, size_t *i, const char **ret_path)
{
	struct gpc_module_view view;

	while (*i < symbols->recording->n_modules) {
		const struct object *object = &symbols->objects[(*i)++];

		if (!object->is_wanted ||
			!gpc_recording_read_module(symbols->recording, *i - 1, &view))
			continue;
		*ret_path = view.path;
		return true;
	}
	return false;
}
