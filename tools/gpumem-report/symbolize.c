/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/symbolize.h"

#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef char *(*demangle_function)(const char *name, char *buf, size_t *size, int *status);

struct object {
	Dwfl *dwfl;
	Dwfl_Module *module; /* NULL: not there, or not the same file */
	bool tried;
};

struct gpc_symbols {
	const struct gpc_recording *recording;
	struct object *objects; /* one a recorded module */
	demangle_function demangle;
};

static char *no_debug_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &no_debug_path,
};

struct gpc_symbols *gpc_symbols_create(const struct gpc_recording *recording)
{
	struct gpc_symbols *symbols = calloc(1, sizeof *symbols);
	void *library;

	if (!symbols)
		return NULL;
	symbols->recording = recording;
	symbols->objects = calloc(recording->n_modules + 1, sizeof *symbols->objects);
	if (!symbols->objects) {
		free(symbols);
		return NULL;
	}
	/* A report must not wait for a server. */
	setenv("DEBUGINFOD_URLS", "", 1);
	/* Names of C++ need the C++ library; whoever has such a program has it. */
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
	if (library)
		*(void **)&symbols->demangle = dlsym(library, "__cxa_demangle");
	return symbols;
}

void gpc_symbols_destroy(struct gpc_symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->recording->n_modules; i++)
		if (symbols->objects[i].dwfl)
			dwfl_end(symbols->objects[i].dwfl);
	free(symbols->objects);
	free(symbols);
}

static bool is_same_build(Dwfl_Module *module, const struct gpucache_module *recorded)
{
	const unsigned char *bits = NULL;
	GElf_Addr address;
	int size = dwfl_module_build_id(module, &bits, &address);

	if (recorded->build_id_size == 0)
		return true;
	return size >= 0 && (uint32_t)size >= recorded->build_id_size &&
	       memcmp(bits, recorded->build_id, recorded->build_id_size) == 0;
}

static void open_object(struct object *object, const struct gpc_module_view *view)
{
	struct stat st;
	int fd = open(view->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return;
	/* The path comes from the recording: it may name a device or a pipe. */
	if (view->path[0] != '/' || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		goto undo_open;
	object->dwfl = dwfl_begin(&callbacks);
	if (!object->dwfl)
		goto undo_open;
	dwfl_report_begin(object->dwfl);
	/* On success the descriptor is libdw's. */
	object->module =
		dwfl_report_elf(object->dwfl, "object", view->path, fd, view->module.bias, true);
	if (!object->module)
		close(fd);
	dwfl_report_end(object->dwfl, NULL, NULL);
	if (object->module && !is_same_build(object->module, &view->module))
		object->module = NULL;
	return;

undo_open:
	close(fd);
}

static char *copy_name(const struct gpc_symbols *symbols, const char *name)
{
	int status = -1;
	char *demangled = NULL;

	if (symbols->demangle && name[0] == '_' && name[1] == 'Z')
		demangled = symbols->demangle(name, NULL, NULL, &status);
	return demangled ? demangled : strdup(name);
}

struct gpc_symbol gpc_symbols_find(struct gpc_symbols *symbols, uint64_t address)
{
	struct gpc_symbol symbol = { 0 };
	struct gpc_module_view view;
	struct object *object;
	size_t i = symbols->recording->n_modules;
	uint64_t call = address - 1;
	const char *name;
	Dwfl_Line *line;
	int number = 0;

	symbol.offset = address;
	for (; i > 0; i--)
		if (gpc_recording_read_module(symbols->recording, i - 1, &view) &&
			call >= view.module.start && call < view.module.end)
			break;
	if (i == 0)
		return symbol;
	symbol.module = view.path;
	symbol.offset = address - view.module.bias;
	object = &symbols->objects[i - 1];
	if (!object->tried)
		open_object(object, &view);
	object->tried = true;
	if (!object->module)
		return symbol;
	name = dwfl_module_addrname(object->module, call);
	if (name)
		symbol.function = copy_name(symbols, name);
	line = dwfl_module_getsrc(object->module, call);
	if (line) {
		const char *file = dwfl_lineinfo(line, NULL, &number, NULL, NULL, NULL);

		if (file && number > 0) {
			symbol.file = strdup(file);
			symbol.line = (uint32_t)number;
		}
	}
	return symbol;
}
