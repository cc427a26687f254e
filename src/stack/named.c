/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All results lie in one mapping: names of code objects by their number, lists of frames by a hash of their stack's id,
 * names of native functions by a hash of the frame, and behind them what these refer to.
 */
#include "stack/named.h"

#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/lock.h"
#include "base/metamem.h"
#include "model/python_lines.h"
#include "stack/exported.h"
#include "stack/linetab.h"
#include "stack/mangled.h"
#include "stack/symtab.h"

#define MAX_LISTS   8192u
#define MAX_NATIVES 16384u
#define MAX_NAME    240u
#define MAX_TABLES  8u /* files of the program */

struct code_name {
	const char *function; /* NULL: not read yet */
	const char *file;
	bool is_library;
};

struct native_name {
	uint64_t frame; /* 0: unused */
	uint64_t base;  /* of its module */
	struct gpc_frame named;
	enum gpc_frame_class class;
	bool is_unloaded; /* the rest of `named` is known from the list of modules */
	bool is_complete;
	bool is_shown;
};

struct lines {
	const char *path;          /* NULL: unused */
	struct gpc_linetab *table; /* NULL: the file has none */
};

struct list {
	struct gpc_stack_frames *frames; /* NULL: there was no room */
	uint32_t id;
};

struct gpc_naming {
	struct gpc_stacks *stacks;
	struct list lists[MAX_LISTS];
	struct native_name natives[MAX_NATIVES];
	struct gpc_exported pending[MAX_NATIVES / 2];
	struct code_name codes[GPUCACHE_MAX_CODES + 1];
	struct lines lines[MAX_TABLES];
	const char *path; /* of the module that was named last; NULL: none */
	uint32_t n_lists;
	uint32_t n_natives;
	uint32_t n_pending;
	size_t used;
	char room[];
};

struct gpc_naming *gpc_naming_open(struct gpc_stacks *stacks)
{
	struct gpc_naming *naming = gpc_metamem_map(GPC_NAMING_BYTES);

	_Static_assert(sizeof *naming < GPC_NAMING_BYTES / 2, "room for names");
	GPC_CHECK(!gpc_lock_is_any_held());
	if (!naming)
		return NULL;
	naming->stacks = stacks;
	gpc_modules_watch(&stacks->modules);
	return naming;
}

void gpc_naming_close(struct gpc_naming *naming)
{
	for (unsigned i = 0; naming && i < MAX_TABLES; i++)
		gpc_linetab_close(naming->lines[i].table);
	gpc_metamem_unmap(naming, naming ? GPC_NAMING_BYTES : 0);
}

static void *take(struct gpc_naming *naming, size_t size)
{
	size_t left = GPC_NAMING_BYTES - sizeof *naming - naming->used;
	void *taken = naming->room + naming->used;

	size = gpc_round_up(size, sizeof(uint64_t));
	if (size > left)
		return NULL;
	naming->used += size;
	return taken;
}

static const char *copy(struct gpc_naming *naming, const char *from, size_t size)
{
	char *to = take(naming, size + 1);
	struct gpc_text text;

	if (!to)
		return NULL;
	text = gpc_text_init(to, size + 1);
	gpc_text_add_clean(&text, from, size);
	return to;
}

/* ---- Python ---- */

static bool read_code(
	struct gpc_naming *naming, struct code_name *name, const struct gpc_code *code)
{
	if (name->function)
		return true;
	name->file = copy(naming, code->file, code->file_size);
	name->is_library =
		gpc_library_holds_code(code->file, code->file_size, code->name, code->name_size);
	name->function = name->file ? copy(naming, code->name, code->name_size) : NULL;
	return name->function;
}

/* False: there is no room.  A frame whose code object was not recorded has neither function nor file. */
static bool add_python(struct gpc_naming *naming, uint64_t raw, struct gpc_stack_frames *list)
{
	struct gpc_frame *frame = &list->frames[list->n++];
	uint32_t number = GPUCACHE_FRAME_CODE(raw);
	struct code_name *name = &naming->codes[number <= GPUCACHE_MAX_CODES ? number : 0];
	struct gpc_code code;

	*frame = (struct gpc_frame){ .is_python = true, .place = raw };
	if (!gpc_codes_get(&naming->stacks->codes, number, &code))
		return true;
	if (!read_code(naming, name, &code))
		return false;
	frame->function = name->function;
	frame->file = name->file;
	frame->is_library = name->is_library;
	frame->line = gpc_python_line(code.python_version, code.lines, code.lines_size,
		code.first_line, GPUCACHE_FRAME_OFFSET(raw));
	return true;
}

/* ---- native ---- */

static const char *readable(struct gpc_naming *naming, const char *symbol)
{
	GPC_TEXT(text, MAX_NAME);

	if (!gpc_mangled_read(symbol, &text))
		gpc_text_add(&text, "%s", symbol);
	return copy(naming, text.buf, text.len);
}

static bool wants_names(void *self, const char *path)
{
	enum gpc_library_kind kind = gpc_library_kind_of(path);

	(void)self;
	/* The frames of these are not shown. */
	return kind != GPC_LIBRARY_OURS && kind != GPC_LIBRARY_DRIVER &&
	       kind != GPC_LIBRARY_INTERPRETER;
}

/* A copy of the path; the one before, if it is the same. */
static const char *path_of(struct gpc_naming *naming, const char *path)
{
	char exe[GPUCACHE_MAX_PATH] = "";

	if (!*path && readlink("/proc/self/exe", exe, sizeof exe - 1) > 0)
		path = exe;
	if (!naming->path || strcmp(naming->path, path) != 0)
		naming->path = copy(naming, path, strlen(path));
	return naming->path;
}

static void note_found(
	void *self, const struct gpc_exported *exported, const char *path, uint64_t base)
{
	struct gpc_naming *naming = self;
	struct native_name *name = &naming->natives[exported->tag];

	name->named.module = path_of(naming, path);
	name->named.offset = exported->address + 1 - base;
	name->base = base;
	if (exported->name)
		name->named.function = readable(naming, exported->name);
}

/* A frame without a name yet; NULL: there is no room. */
static struct native_name *slot_of(struct gpc_naming *naming, uint64_t frame)
{
	uint32_t at = (uint32_t)(frame * UINT64_C(0x9e3779b97f4a7c15) >> 40) % MAX_NATIVES;

	while (naming->natives[at].frame && naming->natives[at].frame != frame)
		at = (at + 1) % MAX_NATIVES;
	return naming->natives[at].frame || naming->n_natives < MAX_NATIVES / 2
		       ? &naming->natives[at]
		       : NULL;
}

/* Adds a frame to those that name_pending() names, unless it is known. */
static void expect(struct gpc_naming *naming, uint64_t frame)
{
	struct native_name *name = slot_of(naming, frame);
	struct gpc_module_place place;

	if (!name || name->frame)
		return;
	naming->n_natives++;
	name->frame = frame;
	name->named.place = frame;
	gpc_modules_find(&naming->stacks->modules, frame, &place);
	if (!place.is_loaded) {
		/* What is in the place of an unloaded module now must not lend it a name. */
		if (place.name[0])
			name->named.module = copy(naming, place.name, strlen(place.name));
		name->named.offset = place.offset;
		name->is_unloaded = true;
		return;
	}
	/* If a call is its function's last instruction, the return address lies in the next function. */
	naming->pending[naming->n_pending++] = (struct gpc_exported){ .address = place.address - 1,
		.tag = (uint32_t)(name - naming->natives) };
}

/* By address, ascending (Shell's sort: qsort may call malloc). */
static void sort(struct gpc_exported *rows, uint32_t n)
{
	for (uint32_t gap = n / 2; gap > 0; gap /= 2)
		for (uint32_t i = gap; i < n; i++) {
			struct gpc_exported row = rows[i];
			uint32_t at = i;

			for (; at >= gap && rows[at - gap].address > row.address; at -= gap)
				rows[at] = rows[at - gap];
			rows[at] = row;
		}
}

static void name_pending(struct gpc_naming *naming)
{
	const struct gpc_exported_sink sink = { naming, wants_names, note_found };

	sort(naming->pending, naming->n_pending);
	gpc_exported_find(naming->pending, naming->n_pending, &sink);
	naming->n_pending = 0;
}

/* NULL: the file has no lines, or there are too many files. */
static const struct gpc_linetab *lines_of(struct gpc_naming *naming, const char *path)
{
	struct lines *lines = naming->lines;
	unsigned i = 0;

	while (i < MAX_TABLES && lines[i].path && strcmp(lines[i].path, path) != 0)
		i++;
	if (i == MAX_TABLES)
		return NULL;
	if (!lines[i].path)
		lines[i] = (struct lines){ path, gpc_linetab_open(path) };
	return lines[i].table;
}

/*
 * A static function, or one of an executable, stands in the file's symbol table only.  That of a library is not read: it
 * may be large, and the call site is in the program.
 */
static void complete(struct gpc_naming *naming, struct native_name *name)
{
	struct gpc_frame *named = &name->named;
	enum gpc_library_kind kind =
		named->module ? gpc_library_kind_of(named->module) : GPC_LIBRARY_PROGRAM;
	uint64_t address = GPUCACHE_FRAME_ADDRESS(name->frame) - 1;
	const bool is_own = named->module && !name->is_unloaded && kind == GPC_LIBRARY_PROGRAM;
	const struct gpc_linetab *lines = is_own ? lines_of(naming, named->module) : NULL;
	char text[512];

	if (is_own && !named->function &&
		gpc_symtab_find(named->module, name->base, address, text, sizeof text))
		named->function = readable(naming, text);
	if (lines && gpc_linetab_find(lines, name->base, address, &named->line, text, sizeof text))
		named->file = copy(naming, text, strlen(text));
	name->class = gpc_frame_class_of(named->function, named->module);
	named->is_library = name->class != GPC_FRAME_PROGRAM;
	named->is_plumbing = name->class == GPC_FRAME_PLUMBING;
	name->is_shown =
		named->module && name->class < GPC_FRAME_HIDDEN && kind != GPC_LIBRARY_DRIVER;
	name->is_complete = true;
}

/* NULL: there is no room. */
static const struct native_name *name_native(struct gpc_naming *naming, uint64_t frame)
{
	struct native_name *name = slot_of(naming, frame);

	if (!name)
		return NULL;
	if (!name->frame) {
		expect(naming, frame);
		name_pending(naming);
	}
	if (!name->is_complete)
		complete(naming, name);
	return name;
}

void gpc_naming_expect(struct gpc_naming *naming, uint32_t id)
{
	struct gpc_raw_stack raw;

	if (!naming || !gpc_depot_find(&naming->stacks->depot, id, &raw))
		return;
	for (uint32_t i = 0; i < raw.n_native; i++)
		expect(naming, raw.frames[i]);
}

/* Up to the call site and its callers; Python frames take the place of the interpreter's and of what is before them. */
static void add_natives(
	struct gpc_naming *naming, const struct gpc_raw_stack *raw, struct gpc_stack_frames *list)
{
	unsigned n_program = 0;

	name_pending(naming);
	for (uint32_t i = 0; i < raw->n_native && n_program <= GPC_SITE_CALLERS; i++) {
		const struct native_name *name = name_native(naming, raw->frames[i]);

		if (name && raw->n_python && name->class >= GPC_FRAME_INTERPRETER)
			return;
		if (!name || !name->is_shown)
			continue;
		list->frames[list->n++] = name->named;
		n_program += !name->named.is_library;
	}
}

/* What called all of the interpreter, if no frame is the program's: a node of the backward pass that calls Python. */
static void add_outer(
	struct gpc_naming *naming, const struct gpc_raw_stack *raw, struct gpc_stack_frames *list)
{
	const struct native_name *name;
	uint32_t first = raw->n_native;

	for (size_t i = 0; i < list->n; i++)
		if (!list->frames[i].is_library)
			return;
	while (first > 0 && (name = name_native(naming, raw->frames[first - 1])) &&
		name->class < GPC_FRAME_INTERPRETER)
		first--;
	for (; first > 0 && first < raw->n_native; first++) {
		name = name_native(naming, raw->frames[first]);
		if (name && name->is_shown)
			list->frames[list->n++] = name->named;
	}
}

/* ---- lists ---- */

static struct gpc_stack_frames *make(struct gpc_naming *naming, uint32_t id)
{
	struct gpc_stack_frames *list;
	struct gpc_raw_stack raw;

	if (!gpc_depot_find(&naming->stacks->depot, id, &raw))
		return NULL;
	list = take(naming,
		sizeof *list + (size_t)(raw.n_native + raw.n_python) * sizeof list->frames[0]);
	if (!list)
		return NULL;
	*list = (struct gpc_stack_frames){ .flags = raw.flags };
	add_natives(naming, &raw, list);
	for (uint32_t i = 0; i < raw.n_python; i++)
		if (!add_python(naming, raw.frames[raw.n_native + i], list))
			return NULL;
	if (raw.n_python)
		add_outer(naming, &raw, list);
	gpc_frames_finish(list);
	return list;
}

const struct gpc_stack_frames *gpc_naming_find(struct gpc_naming *naming, uint32_t id)
{
	uint32_t at = id % MAX_LISTS;

	if (!naming || !id)
		return NULL;
	while (naming->lists[at].id && naming->lists[at].id != id)
		at = (at + 1) % MAX_LISTS;
	if (!naming->lists[at].id) {
		if (naming->n_lists >= MAX_LISTS / 2)
			return NULL;
		naming->n_lists++;
		naming->lists[at] = (struct list){ make(naming, id), id };
	}
	return naming->lists[at].frames;
}

bool gpc_naming_describe(
	struct gpc_naming *naming, uint32_t id, bool has_via, struct gpc_text *text)
{
	const struct gpc_stack_frames *list = gpc_naming_find(naming, id);

	if (!list || list->site < 0 ||
		(list->frames[list->site].is_python && !list->frames[list->site].file))
		return false;
	gpc_frames_fit(list, has_via, text);
	return true;
}

bool gpc_stack_describe(struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size)
{
	struct gpc_text text = gpc_text_init(buf, size);
	struct gpc_naming *naming = gpc_naming_open(stacks);
	bool is_described = gpc_naming_describe(naming, id, true, &text);

	gpc_naming_close(naming);
	return is_described;
}
