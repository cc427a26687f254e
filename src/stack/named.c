/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All results lie in one mapping: names of code objects by their number, lists of frames by a hash of their stack's id,
 * names of native functions by a hash of the frame, and behind them what these refer to.
 */
#include "stack/named.h"

#include <dlfcn.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/lock.h"
#include "base/metamem.h"
#include "model/python_lines.h"
#include "stack/mangled.h"
#include "stack/symtab.h"

#define MAX_LISTS   8192u
#define MAX_NATIVES 1024u
#define MAX_NAME    240u

/*
 * Before the interpreter come PyTorch's binding for Python, the operator (at::_ops), and what autograd does with it
 * (torch::autograd::VariableType).
 */
#define N_BEFORE_PYTHON 8u

struct code_name {
	const char *function; /* NULL: not read yet */
	const char *file;
	bool is_library;
};

struct native_name {
	uint64_t frame; /* 0: unused */
	struct gpc_frame named;
	enum gpc_frame_class class;
};

struct list {
	struct gpc_stack_frames *frames;
	uint32_t id;
	enum gpc_naming_way way;
};

struct gpc_naming {
	struct gpc_stacks *stacks;
	struct list lists[MAX_LISTS];
	struct native_name natives[MAX_NATIVES];
	struct code_name codes[GPUCACHE_MAX_CODES + 1];
	uint32_t n_lists;
	uint32_t n_natives;
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

static bool read_code(struct gpc_naming *naming, struct code_name *name, const struct gpc_code *code)
{
	if (name->function)
		return true;
	name->file = copy(naming, code->file, code->file_size);
	name->is_library = gpc_library_holds_python(code->file, code->file_size);
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

/* What is in the place of an unloaded module now must not lend it a name. */
static bool name_unloaded(struct gpc_naming *naming, const struct gpc_module_place *place,
	struct native_name *name)
{
	name->named.module = copy(naming, place->name, strlen(place->name));
	name->named.offset = place->offset;
	return place->name[0] && name->named.module;
}

static bool name_loaded(struct gpc_naming *naming, uintptr_t address, struct native_name *name)
{
	GPC_TEXT(text, MAX_NAME);
	char symbol[512];
	Dl_info info;

	if (!dladdr((const void *)address, &info) || !info.dli_fname)
		return false;
	name->named.module = copy(naming, info.dli_fname, strlen(info.dli_fname));
	name->named.offset = address + 1 - (uintptr_t)info.dli_fbase;
	if (info.dli_sname)
		gpc_format(symbol, sizeof symbol, "%s", info.dli_sname);
	else if (!gpc_symtab_find(
			 info.dli_fname, (uintptr_t)info.dli_fbase, address, symbol, sizeof symbol))
		return name->named.module;
	if (!gpc_mangled_read(symbol, &text))
		gpc_text_add(&text, "%s", symbol);
	name->named.function = copy(naming, text.buf, text.len);
	return name->named.module && name->named.function;
}

/* NULL: the frame is in no module, or there is no room. */
static const struct native_name *name_native(struct gpc_naming *naming, uint64_t frame)
{
	uint32_t at = (uint32_t)(frame * UINT64_C(0x9e3779b97f4a7c15) >> 40) % MAX_NATIVES;
	struct gpc_module_place place;
	struct native_name *name;

	while (naming->natives[at].frame && naming->natives[at].frame != frame)
		at = (at + 1) % MAX_NATIVES;
	name = &naming->natives[at];
	if (!name->frame) {
		if (naming->n_natives >= MAX_NATIVES / 2)
			return NULL;
		naming->n_natives++;
		name->frame = frame;
		name->named.place = frame;
		gpc_modules_find(&naming->stacks->modules, frame, &place);
		/* If a call is its function's last instruction, the return address lies in the next function. */
		if (place.is_loaded ? !name_loaded(naming, place.address - 1, name)
				    : !name_unloaded(naming, &place, name))
			name->named.module = NULL;
		name->class = gpc_frame_class_of(name->named.function, name->named.module);
		name->named.is_library = name->class != GPC_FRAME_PROGRAM;
		name->named.is_plumbing = name->class == GPC_FRAME_PLUMBING;
	}
	return name->named.module ? name : NULL;
}

static bool is_shown(const struct native_name *name)
{
	return name && name->class != GPC_FRAME_HIDDEN && name->class != GPC_FRAME_INTERPRETER &&
	       name->class != GPC_FRAME_EVAL &&
	       gpc_library_kind_of(name->named.module) != GPC_LIBRARY_DRIVER;
}

/* The frames of a stack without Python, up to the call site and its callers. */
static void add_natives(
	struct gpc_naming *naming, const struct gpc_raw_stack *raw, struct gpc_stack_frames *list)
{
	unsigned n_program = 0;

	for (uint32_t i = 0; i < raw->n_native && n_program <= GPC_SITE_CALLERS; i++) {
		const struct native_name *name = name_native(naming, raw->frames[i]);

		if (!is_shown(name))
			continue;
		list->frames[list->n++] = name->named;
		n_program += !name->named.is_library;
	}
}

/* True if the frame is in a file that begins as one of Python itself, by the list of modules: no symbol is looked up. */
static bool is_interpreter(struct gpc_naming *naming, uint64_t frame)
{
	char name[GPC_MODULE_NAME];

	gpc_modules_name(&naming->stacks->modules, frame, name);
	return gpc_library_kind_of(name) == GPC_LIBRARY_INTERPRETER;
}

/* The last native frames before the interpreter's. */
static void add_operator(
	struct gpc_naming *naming, const struct gpc_raw_stack *raw, struct gpc_stack_frames *list)
{
	uint32_t end = 0;

	while (end < raw->n_native && !is_interpreter(naming, raw->frames[end]))
		end++;
	for (uint32_t i = end > N_BEFORE_PYTHON ? end - N_BEFORE_PYTHON : 0; i < end; i++) {
		const struct native_name *name = name_native(naming, raw->frames[i]);

		if (is_shown(name))
			list->frames[list->n++] = name->named;
	}
}

/* ---- lists ---- */

static struct gpc_stack_frames *make(
	struct gpc_naming *naming, uint32_t id, enum gpc_naming_way way)
{
	struct gpc_stack_frames *list;
	struct gpc_raw_stack raw;
	size_t most;

	if (!gpc_depot_find(&naming->stacks->depot, id, &raw))
		return NULL;
	most = raw.n_python + (way == GPC_NAMING_WHOLE ? raw.n_native : 0u);
	list = take(naming, sizeof *list + most * sizeof list->frames[0]);
	if (!list)
		return NULL;
	*list = (struct gpc_stack_frames){ .flags = raw.flags };
	list->is_nameless = way == GPC_NAMING_QUICK && !raw.n_python;
	if (way == GPC_NAMING_WHOLE)
		(raw.n_python ? add_operator : add_natives)(naming, &raw, list);
	for (uint32_t i = 0; i < raw.n_python; i++)
		if (!add_python(naming, raw.frames[raw.n_native + i], list))
			return NULL;
	gpc_frames_finish(list);
	return list;
}

const struct gpc_stack_frames *gpc_naming_find(
	struct gpc_naming *naming, uint32_t id, enum gpc_naming_way way)
{
	uint32_t at = id % MAX_LISTS;
	struct gpc_stack_frames *made;
	struct list *list;

	if (!naming || !id)
		return NULL;
	while (naming->lists[at].id && naming->lists[at].id != id)
		at = (at + 1) % MAX_LISTS;
	list = &naming->lists[at];
	if (list->id && list->way >= way)
		return list->frames;
	if (!list->id && naming->n_lists >= MAX_LISTS / 2)
		return NULL;
	made = make(naming, id, way);
	naming->n_lists += !list->id;
	*list = (struct list){ made, id, way };
	return made;
}

bool gpc_naming_describe(struct gpc_naming *naming, uint32_t id, struct gpc_text *text)
{
	const struct gpc_stack_frames *list = gpc_naming_find(naming, id, GPC_NAMING_WHOLE);

	if (!list || list->site < 0 ||
		(list->frames[list->site].is_python && !list->frames[list->site].file))
		return false;
	gpc_frames_fit(list, text);
	return true;
}

bool gpc_stack_describe(struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size)
{
	struct gpc_text text = gpc_text_init(buf, size);
	struct gpc_naming *naming = gpc_naming_open(stacks);
	bool is_described = gpc_naming_describe(naming, id, &text);

	gpc_naming_close(naming);
	return is_described;
}
