/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture that is on no trail lets the native walk and the Python walk fill one local array of frames, and has the
 * depot intern the array.  Only a stack that is new to the depot costs a look for new modules.  A description for a
 * message is made from the stored frames and code objects; dladdr and the symbol tables of files (symtab.h) name the
 * native frames.
 */
#include "stack/capture.h"

#include <dlfcn.h>
#include <string.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/text.h"
#include "model/libraries.h"
#include "model/python_lines.h"
#include "model/torch.h"
#include "stack/mangled.h"
#include "stack/symtab.h"

/* Returns n, or `limit` with GPUCACHE_STACK_CUT set in *flags. */
static uint32_t cut(uint32_t n, uint32_t limit, uint32_t *flags)
{
	if (n <= limit)
		return n;
	*flags |= GPUCACHE_STACK_CUT;
	return limit;
}

/* True if something was unloaded, by whose rules the caller may have walked. */
static bool forget_unloaded(void *self)
{
	struct gpc_modules *modules = self;
	uint32_t n_turns = gpc_modules_n_turns(modules);

	gpc_modules_look(modules);
	return gpc_modules_n_turns(modules) != n_turns;
}

/* Returns the id of the stack from `start` on.  *ret_is_known: it was seen before, and all that is in it is known. */
static __attribute__((noinline)) uint32_t take_walk(struct gpc_stacks *stacks,
	const struct gpc_walk_start *start, uint32_t skip, bool *ret_is_known)
{
	uint64_t frames[2 * GPC_STACKS_DEPTH + 1];
	struct gpc_raw_stack stack;
	bool is_new = false;
	uint32_t n_turns;
	bool is_sure;
	bool is_any;
	uint32_t n;
	uint32_t id;

	do {
		n_turns = gpc_modules_n_turns(&stacks->modules);
		stack = (struct gpc_raw_stack){ .frames = frames };
		/* One frame more than is stored, to know whether the stack is deeper. */
		n = gpc_unwind_capture_from(
			&stacks->unwind, start, frames, GPC_STACKS_DEPTH + 1, skip);
		stack.n_native = (uint16_t)cut(n, GPC_STACKS_DEPTH, &stack.flags);
		is_sure = gpc_modules_mark(&stacks->modules, frames, stack.n_native);
		stack.n_python = (uint16_t)gpc_python_capture(
			&stacks->python, frames + stack.n_native, GPC_STACKS_DEPTH, &stack.flags);
		is_any = stack.n_native || stack.n_python;
		id = is_any ? gpc_depot_known(&stacks->depot, &stack) : 0;
		if (!is_any || id || gpc_intern_is_closed(&stacks->depot.intern))
			break;
		gpc_modules_look(&stacks->modules);
		/* Rules of unloaded code may have misled this walk, and a generation may have changed: walk again. */
	} while (gpc_modules_n_turns(&stacks->modules) != n_turns);
	if (stack.flags & GPUCACHE_STACK_NO_PYTHON)
		atomic_fetch_add_explicit(&stacks->n_no_python, 1, memory_order_relaxed);
	*ret_is_known = id && is_sure && !(stack.flags & GPUCACHE_STACK_NO_PYTHON);
	if (!is_any || id)
		return id;
	return gpc_depot_put(&stacks->depot, &stack, &is_new);
}

/* Changes whenever the words of a trail may mean another stack than before. */
static uint64_t epoch_of(const struct gpc_stacks *stacks)
{
	return (uint64_t)gpc_modules_n_turns(&stacks->modules) << 32 |
	       gpc_walk_n_changes(&stacks->unwind.walk);
}

/* True if what a capture started with is still so: Python may have been found since, or be about to end. */
static bool is_still(struct gpc_stacks *stacks, const struct gpc_trail_start *start)
{
	struct gpc_python_top top;

	return epoch_of(stacks) == start->epoch && gpc_python_find_top(&stacks->python, &top) &&
	       top.thread == start->python.thread && top.frame == start->python.frame;
}

/* For the debug variants: true if a walk finds stack `id`, too, or something has changed since. */
static __attribute__((unused)) bool is_as_walk_says(
	struct gpc_stacks *stacks, const struct gpc_trail_start *start, uint32_t id)
{
	bool is_known;

	return take_walk(stacks, &start->walk, start->skip, &is_known) == id ||
	       !is_still(stacks, start);
}

/* A stack that was never seen before may never be seen again, so the trail of a known one is kept. */
static __attribute__((noinline)) void keep_trail(
	struct gpc_stacks *stacks, const struct gpc_trail_start *start, uint32_t id)
{
	struct gpc_raw_stack stack;

	if (is_still(stacks, start) && gpc_depot_find(&stacks->depot, id, &stack))
		gpc_trails_keep(&stacks->trails, &stacks->unwind.walk, &stacks->python, start, id,
			&stack, GPC_STACKS_DEPTH);
}

__attribute__((noinline)) uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip)
{
	struct gpc_trail_start start = { .walk = gpc_walk_caller(), .skip = skip };
	bool may_follow;
	bool is_known;
	uint32_t id;

	gpc_modules_watch(&stacks->modules);
	start.epoch = epoch_of(stacks);
	may_follow = gpc_python_find_top(&stacks->python, &start.python);
	id = may_follow ? gpc_trails_find(&stacks->trails, &stacks->python, &start) : 0;
	if (id) {
		GPC_CHECK(is_as_walk_says(stacks, &start, id));
		return id;
	}
	id = take_walk(stacks, &start.walk, skip, &is_known);
	if (may_follow && is_known)
		keep_trail(stacks, &start, id);
	return id;
}

/* The Python frames of a stack, innermost first, and the table of their code objects. */
struct python_frames {
	const struct gpc_codes *codes;
	const uint64_t *frames;
	uint32_t n;
};

/*
 * The index of the first frame from i on whose code object was recorded and, with of_program, is not a library's;
 * python->n: none.
 */
static uint32_t find_frame(
	const struct python_frames *python, uint32_t i, bool of_program, struct gpc_code *ret_code)
{
	for (; i < python->n; i++)
		if (gpc_codes_get(
			    python->codes, GPUCACHE_FRAME_CODE(python->frames[i]), ret_code) &&
			!(of_program &&
				gpc_library_holds_python(ret_code->file, ret_code->file_size)))
			break;
	return i;
}

/* Adds the qualified name of a function without "<locals>.", or, unless is_whole, only its last component. */
static void add_name(struct gpc_text *text, const struct gpc_code *code, bool is_whole)
{
	static const char locals[] = "<locals>.";
	const char *end = code->name + code->name_size;
	const char *dot =
		is_whole || !code->name_size ? NULL : memrchr(code->name, '.', code->name_size - 1);
	const char *at = dot ? dot + 1 : code->name;

	while (at < end) {
		if ((size_t)(end - at) >= sizeof locals &&
			memcmp(at, locals, sizeof locals - 1) == 0)
			at += sizeof locals - 1;
		else
			gpc_text_add(text, "%c", *at++);
	}
}

static uint32_t line_of(const struct gpc_code *code, uint64_t frame)
{
	return gpc_python_line(code->python_version, code->lines, code->lines_size,
		code->first_line, GPUCACHE_FRAME_OFFSET(frame));
}

/* Adds " < step:60" for up to n callers of frame `site`; without the line if the file is not that of `first`. */
static void add_callers(const struct python_frames *python, uint32_t site, uint32_t n,
	const struct gpc_code *first, struct gpc_text *text)
{
	struct gpc_code code;
	uint32_t i = site;

	while (n-- > 0 && (i = find_frame(python, i + 1, true, &code)) < python->n) {
		uint32_t line = line_of(&code, python->frames[i]);

		gpc_text_add(text, " < ");
		add_name(text, &code, false);
		if (line && code.file_size == first->file_size &&
			!memcmp(code.file, first->file, code.file_size))
			gpc_text_add(text, ":%u", line);
	}
}

/* The optional parts of a description. */
struct extent {
	bool has_via;
	bool has_scope;
	uint32_t n_callers;
};

/* Adds "Net.forward train.py:10, via gelu < train_step:18"; false if no frame's code object was recorded. */
static bool describe_python(
	const struct python_frames *python, const struct extent *extent, struct gpc_text *text)
{
	struct gpc_code code, via;
	uint32_t asker = find_frame(python, 0, false, &via);
	uint32_t site = find_frame(python, 0, true, &code);
	const char *slash, *file;
	uint32_t line;

	if (asker == python->n)
		return false;
	if (site == python->n) {
		site = asker;
		code = via;
	}
	slash = memrchr(code.file, '/', code.file_size);
	file = slash ? slash + 1 : code.file;
	line = line_of(&code, python->frames[site]);
	add_name(text, &code, extent->has_scope);
	gpc_text_add(text, " %.*s", (int)(code.file + code.file_size - file), file);
	if (line)
		gpc_text_add(text, ":%u", line);
	if (extent->has_via && asker < site) {
		gpc_text_add(text, ", via ");
		add_name(text, &via, true);
	}
	add_callers(python, site, extent->n_callers, &code, text);
	return true;
}

struct native_name {
	char text[96];
	const char *module; /* its file, without the folders */
	enum gpc_library_kind kind;
};

/* Names a frame "function", or "module+0xoffset".  False if it is in this library, the driver or no module. */
static bool name_frame(struct gpc_modules *modules, uint64_t frame, struct native_name *ret_name)
{
	struct gpc_text text = gpc_text_init(ret_name->text, sizeof ret_name->text);
	struct gpc_module_place place;
	uintptr_t address;
	char symbol[512];
	Dl_info info;

	gpc_modules_find(modules, frame, &place);
	if (!place.is_loaded) {
		/* What is in its place now must not lend it a name. */
		ret_name->module = "unloaded";
		ret_name->kind = gpc_library_kind_of(place.name);
		gpc_text_add(&text, "%s+0x%lx", place.name, (unsigned long)place.offset);
		return place.name[0] && ret_name->kind != GPC_LIBRARY_OURS &&
		       ret_name->kind != GPC_LIBRARY_DRIVER;
	}
	/* If a call is its function's last instruction, the return address lies in the next function. */
	address = place.address - 1;
	if (!dladdr((const void *)address, &info) || !info.dli_fname)
		return false;
	ret_name->module = gpc_base_name(info.dli_fname);
	ret_name->kind = gpc_library_kind_of(info.dli_fname);
	if (ret_name->kind == GPC_LIBRARY_OURS || ret_name->kind == GPC_LIBRARY_DRIVER)
		return false;
	if (info.dli_sname)
		gpc_format(symbol, sizeof symbol, "%s", info.dli_sname);
	else if (!gpc_symtab_find(
			 info.dli_fname, (uintptr_t)info.dli_fbase, address, symbol, sizeof symbol))
		gpc_format(symbol, sizeof symbol, "%s+0x%lx", ret_name->module,
			(unsigned long)(address + 1 - (uintptr_t)info.dli_fbase));
	if (!gpc_mangled_read(symbol, &text))
		gpc_text_add(&text, "%s", symbol);
	return true;
}

/* Shortens "torch::autograd::generated::AddmmBackward0::apply" to "AddmmBackward0"; false for other names. */
static bool find_node(struct native_name *name)
{
	size_t len;
	const char *node = gpc_torch_node(name->text, &len);

	if (!node)
		return false;
	memmove(name->text, node, len);
	name->text[len] = '\0';
	name->module = "backward pass";
	return true;
}

/*
 * Finds the innermost frame of the program.  If there is none, finds the first node of PyTorch's backward pass
 * (find_node) further out than the innermost named frame; if there is none, that frame.  Returns n_native if no frame
 * can be named.
 */
static uint32_t find_native(struct gpc_modules *modules, const struct gpc_raw_stack *stack,
	struct native_name *ret_name)
{
	struct native_name name;
	bool is_node = false;
	uint32_t site = stack->n_native;

	for (uint32_t i = 0; i < stack->n_native; i++) {
		if (!name_frame(modules, stack->frames[i], &name))
			continue;
		if (name.kind == GPC_LIBRARY_PROGRAM) {
			*ret_name = name;
			return i;
		}
		if (site == stack->n_native || (!is_node && find_node(&name))) {
			is_node = site != stack->n_native;
			*ret_name = name;
			site = i;
		}
	}
	return site;
}

/* Adds "grow < step < main (train)"; false if no frame has a name. */
static bool describe_native(struct gpc_modules *modules, const struct gpc_raw_stack *stack,
	uint32_t n_callers, struct gpc_text *text)
{
	struct native_name site, name;
	uint32_t at = find_native(modules, stack, &site);

	if (at == stack->n_native)
		return false;
	gpc_text_add(text, "%s", site.text);
	while (n_callers > 0 && ++at < stack->n_native) {
		if (!name_frame(modules, stack->frames[at], &name))
			continue;
		/* libc is as a rule the caller of main.  If the site is a library's, no frame is the program's. */
		if (name.kind == GPC_LIBRARY_SYSTEM || site.kind != GPC_LIBRARY_PROGRAM)
			break;
		if (name.kind != GPC_LIBRARY_PROGRAM)
			continue;
		gpc_text_add(text, " < %s", name.text);
		n_callers--;
	}
	gpc_text_add(text, " (%s)", site.module);
	return true;
}

bool gpc_stack_describe(struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size)
{
	/* Tried in order until the text fits. */
	static const struct extent extents[] = { { true, true, GPC_SITE_CALLERS },
		{ true, true, 3 }, { true, true, 2 }, { true, true, 1 }, { false, true, 1 },
		{ false, true, 0 }, { false, false, 0 } };
	struct gpc_text text = gpc_text_init(buf, size);
	struct python_frames python = { .codes = &stacks->codes };
	struct gpc_raw_stack stack;

	GPC_CHECK(!gpc_lock_is_any_held());
	gpc_modules_watch(&stacks->modules);
	if (!gpc_depot_find(&stacks->depot, id, &stack))
		return false;
	python.frames = stack.frames + stack.n_native;
	python.n = stack.n_python;
	for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
		gpc_text_clear(&text);
		if (!describe_python(&python, &extents[i], &text) &&
			!describe_native(&stacks->modules, &stack, extents[i].n_callers, &text))
			return false;
		if (!text.cut)
			break;
	}
	return true;
}

uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->depot.n_dropped, memory_order_relaxed);
}

uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->n_no_python, memory_order_relaxed);
}

enum gpc_status gpc_stacks_init(struct gpc_stacks *stacks, const struct gpc_stacks_params *params)
{
	enum gpc_status st;

	*stacks = (struct gpc_stacks){ 0 };
	st = gpc_depot_init(&stacks->depot, params->max_stacks, &params->sink);
	if (st != GPC_OK)
		return st;
	st = gpc_codes_init(&stacks->codes, &params->sink);
	if (st != GPC_OK)
		goto undo_depot;
	st = gpc_modules_init(&stacks->modules, &params->sink, &stacks->unwind.walk);
	if (st != GPC_OK)
		goto undo_codes;
	gpc_unwind_init(&stacks->unwind, params->lookup_in);
	stacks->unwind.forget_unloaded = forget_unloaded;
	stacks->unwind.self = &stacks->modules;
	gpc_trails_init(&stacks->trails);
	gpc_python_init(&stacks->python, params->with_python, &stacks->codes, params->lookup_in);
	return GPC_OK;

undo_codes:
	gpc_codes_fini(&stacks->codes);
undo_depot:
	gpc_depot_fini(&stacks->depot);
	return st;
}

void gpc_stacks_fini(struct gpc_stacks *stacks)
{
	gpc_trails_fini(&stacks->trails);
	gpc_unwind_fini(&stacks->unwind);
	gpc_modules_fini(&stacks->modules);
	gpc_codes_fini(&stacks->codes);
	gpc_depot_fini(&stacks->depot);
}
