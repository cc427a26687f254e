/* SPDX-License-Identifier: Apache-2.0 */
#include "stack/capture.h"

#include <dlfcn.h>
#include <string.h>

#include "base/check.h"
#include "base/lock.h"
#include "base/python_lines.h"
#include "base/text.h"
#include "stack/symtab.h"

/* Whose frames say nothing about who asked. */
static const char *const own_modules[] = { "libcuda.", "libcudart", "libgpucache", "libnvidia" };

/* At most limit of n; says so in *flags. */
static uint32_t cut(uint32_t n, uint32_t limit, uint32_t *flags)
{
	if (n <= limit)
		return n;
	*flags |= GPUCACHE_STACK_CUT;
	return limit;
}

__attribute__((noinline)) uint32_t gpc_stack_capture(struct gpc_stacks *stacks, uint32_t skip)
{
	uint64_t frames[2 * GPC_STACKS_MAX_DEPTH + 1];
	struct gpc_stack_frames stack = { .frames = frames };
	bool is_new = false;
	uint32_t n;
	uint32_t id;

	/* One more than wanted, to see whether there is more.  Frame 0 would be this function. */
	n = gpc_unwind_capture(&stacks->unwind, frames, stacks->max_depth + 1, skip + 1);
	stack.n_native = (uint16_t)cut(n, stacks->max_depth, &stack.flags);
	stack.n_python = (uint16_t)gpc_python_capture(
		&stacks->python, frames + stack.n_native, stacks->max_depth, &stack.flags);
	if (stack.flags & GPUCACHE_STACK_NO_PYTHON)
		atomic_fetch_add_explicit(&stacks->n_no_python, 1, memory_order_relaxed);
	if (!stack.n_native && !stack.n_python)
		return 0;
	id = gpc_depot_put(&stacks->depot, &stack, &is_new);
	if (is_new && stack.n_native)
		gpc_modules_refresh(&stacks->modules);
	return id;
}

/*
 * The frames of a description: who asked, and through whom.  One alone is often a wrapper of
 * everybody.  Where there is little room it is fewer, for half a name says nothing.
 */
#define DESCRIBED_FRAMES 3

/* "function:line"; only the function where it is in another file than the first. */
static void add_python_frame(
	struct gpc_text *text, const struct gpc_code *code, uint64_t frame, bool is_same_file)
{
	uint32_t line = gpc_python_line(code->python_version, code->lines, code->lines_size,
		code->first_line, GPUCACHE_FRAME_OFFSET(frame));
	uint32_t size = 0;

	/* "Trainer.step" is step: a short line has more need of the callers than of classes. */
	while (size < code->name_size && code->name[code->name_size - size - 1] != '.')
		size++;
	if (size == 0)
		size = code->name_size;
	gpc_text_add(text, "%.*s", (int)size, code->name + code->name_size - size);
	if (line && is_same_file)
		gpc_text_add(text, ":%u", line);
}

static bool describe_python(const struct gpc_stacks *stacks, const struct gpc_stack_frames *stack,
	uint32_t max, struct gpc_text *text)
{
	struct gpc_code first = { 0 };
	uint32_t n = 0;

	for (uint32_t i = 0; i < stack->n_python && n < max; i++) {
		uint64_t frame = stack->frames[stack->n_native + i];
		struct gpc_code code;

		if (!gpc_codes_get(&stacks->codes, GPUCACHE_FRAME_CODE(frame), &code))
			continue;
		if (n++ == 0)
			first = code;
		else
			gpc_text_add(text, " < ");
		add_python_frame(text, &code, frame,
			code.file_size == first.file_size &&
				!memcmp(code.file, first.file, code.file_size));
	}
	if (n > 0) {
		const char *slash = memrchr(first.file, '/', first.file_size);
		const char *file = slash ? slash + 1 : first.file;

		gpc_text_add(text, " (%.*s)", (int)(first.file + first.file_size - file), file);
	}
	return n > 0;
}

static bool is_own_module(const char *name)
{
	for (size_t i = 0; i < sizeof(own_modules) / sizeof(own_modules[0]); i++)
		if (!strncmp(name, own_modules[i], strlen(own_modules[i])))
			return true;
	return false;
}

/*
 * "function", or "module+0xoffset" where it has no name.  False: a frame that nobody wants to
 * see.
 */
static bool name_frame(uint64_t frame, char *buf, size_t size, const char **ret_module)
{
	/* A return address may lie behind the end of the function that made the call. */
	uintptr_t address = (uintptr_t)frame - 1;
	Dl_info info;

	if (!dladdr((const void *)address, &info) || !info.dli_fname)
		return false;
	*ret_module = gpc_base_name(info.dli_fname);
	if (is_own_module(*ret_module))
		return false;
	if (info.dli_sname)
		gpc_format(buf, size, "%s", info.dli_sname);
	else if (!gpc_symtab_find(info.dli_fname, (uintptr_t)info.dli_fbase, address, buf, size))
		gpc_format(buf, size, "%s+0x%lx", *ret_module,
			(unsigned long)(address + 1 - (uintptr_t)info.dli_fbase));
	return true;
}

static bool describe_native(
	const struct gpc_stack_frames *stack, uint32_t max, struct gpc_text *text)
{
	const char *first_module = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < stack->n_native && n < max; i++) {
		const char *module;
		char name[96];

		if (!name_frame(stack->frames[i], name, sizeof name, &module))
			continue;
		/* What called main says nothing. */
		if (n && !strncmp(module, "libc.", 5))
			break;
		gpc_text_add(text, n ? " < %s" : "%s", name);
		first_module = n ? first_module : module;
		n++;
	}
	if (first_module)
		gpc_text_add(text, " (%s)", first_module);
	return n > 0;
}

bool gpc_stack_describe(const struct gpc_stacks *stacks, uint32_t id, char *buf, size_t size)
{
	struct gpc_text text = gpc_text_init(buf, size);
	struct gpc_stack_frames stack;
	bool is_described = gpc_depot_find(&stacks->depot, id, &stack);

	GPC_CHECK(!gpc_lock_is_any_held());
	for (uint32_t max = DESCRIBED_FRAMES; is_described && max > 0; max--) {
		text = gpc_text_init(buf, size);
		is_described = describe_python(stacks, &stack, max, &text) ||
			       describe_native(&stack, max, &text);
		if (!text.cut)
			break;
	}
	return is_described;
}

uint64_t gpc_stacks_dropped(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->depot.n_dropped, memory_order_relaxed);
}

uint64_t gpc_stacks_dropped_python(const struct gpc_stacks *stacks)
{
	return atomic_load_explicit(&stacks->n_no_python, memory_order_relaxed);
}

static uint32_t depth_of(const struct gpc_stacks_params *params)
{
	if (!params->max_depth)
		return GPC_STACKS_DEFAULT_DEPTH;
	return params->max_depth < GPC_STACKS_MAX_DEPTH ? params->max_depth : GPC_STACKS_MAX_DEPTH;
}

enum gpc_status gpc_stacks_init(struct gpc_stacks *stacks, const struct gpc_stacks_params *params)
{
	enum gpc_status st;

	*stacks = (struct gpc_stacks){ .max_depth = depth_of(params) };
	st = gpc_depot_init(&stacks->depot,
		params->max_stacks ? params->max_stacks : GPC_DEPOT_DEFAULT_STACKS, &params->sink);
	if (st != GPC_OK)
		return st;
	st = gpc_codes_init(&stacks->codes, &params->sink);
	if (st != GPC_OK)
		goto undo_depot;
	st = gpc_modules_init(&stacks->modules, &params->sink);
	if (st != GPC_OK)
		goto undo_codes;
	if (params->with_native)
		gpc_unwind_init(&stacks->unwind, params->lookup_in);
	gpc_python_init(&stacks->python, params->with_python, &stacks->codes, params->lookup);
	return GPC_OK;

undo_codes:
	gpc_codes_fini(&stacks->codes);
undo_depot:
	gpc_depot_fini(&stacks->depot);
	return st;
}

void gpc_stacks_fini(struct gpc_stacks *stacks)
{
	gpc_unwind_fini(&stacks->unwind);
	gpc_modules_fini(&stacks->modules);
	gpc_codes_fini(&stacks->codes);
	gpc_depot_fini(&stacks->depot);
}
