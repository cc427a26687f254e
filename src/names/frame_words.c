/* SPDX-License-Identifier: Apache-2.0 */
/* How a frame, and a call site with its callers, is said. */
#include <string.h>

#include "names/frames.h"
#include "names/short_names.h"

/* Longer names do not fit on a terminal line next to a frame's number. */
#define MAX_WHOLE 100

/* What is said of one frame. */
#define MAX_WORDS 300

/* Appends the function's name: in full if `whole` and not too long, else without templates and parameters. */
static void add_function(const struct gpc_frame *frame, bool whole, struct gpc_text *ret_text)
{
	if (!frame->function)
		gpc_text_add(ret_text, "?");
	else if (whole && strlen(frame->function) <= MAX_WHOLE)
		gpc_text_add(ret_text, "%s", frame->function);
	else
		gpc_name_short(frame->function, ret_text);
}

void gpc_frame_describe(const struct gpc_frame *frame, bool whole_path, struct gpc_text *ret_text)
{
	size_t start = ret_text->len;

	if (frame->file) {
		add_function(frame, whole_path, ret_text);
		gpc_text_add(
			ret_text, "  %s", whole_path ? frame->file : gpc_base_name(frame->file));
		if (frame->line)
			gpc_text_add(ret_text, ":%u", (unsigned)frame->line);
	} else if (frame->is_python) {
		gpc_text_add(ret_text, "?  (a Python frame that was not recorded)");
	} else if (frame->module && frame->function) {
		add_function(frame, whole_path, ret_text);
		gpc_text_add(ret_text, "  %s", gpc_base_name(frame->module));
	} else if (frame->module) {
		gpc_text_add(ret_text, "%s+0x%llx",
			whole_path ? frame->module : gpc_base_name(frame->module),
			(unsigned long long)frame->offset);
	} else {
		gpc_text_add(ret_text, "0x%llx", (unsigned long long)frame->offset);
	}
	/* Functions and files are clean already, but the module's path is as the recording has it. */
	gpc_text_clean(ret_text->buf + start);
}

/* The optional parts of a chain. */
struct extent {
	bool has_via;
	bool has_scope;   /* the class of the site's method */
	bool has_classes; /* those of its callers */
	unsigned n_callers;
};

/* Splits what is said of a frame: *ret_place becomes "net.py:12", or "" if only the function, or its module, is known. */
static const char *split(struct gpc_text *words, bool has_scope, const char **ret_place)
{
	char *gap = strstr(words->buf, "  ");
	const char *name = words->buf;

	*ret_place = "";
	if (gap) {
		*gap = '\0';
		*ret_place = gap + 2;
	}
	for (const char *at = name; !has_scope && gap && *at; at++)
		if ((*at == '.' || *at == ':') && at[1])
			name = at + 1;
	return name;
}

static void add_caller(const struct gpc_frame *site, const struct gpc_frame *caller, bool has_scope,
	struct gpc_text *ret_text)
{
	GPC_TEXT(words, MAX_WORDS);
	const char *place, *name;

	gpc_frame_describe(caller, false, &words);
	name = split(&words, has_scope, &place);
	gpc_text_add(ret_text, " < %s", name);
	if (!caller->file)
		return;
	if (!site->file || strcmp(site->file, caller->file) != 0)
		gpc_text_add(ret_text, " %s", place);
	else if (caller->line)
		gpc_text_add(ret_text, ":%u", (unsigned)caller->line);
}

void gpc_frame_add_caller(
	const struct gpc_frame *site, const struct gpc_frame *caller, struct gpc_text *ret_text)
{
	add_caller(site, caller, true, ret_text);
}

static void add_chain(const struct gpc_stack_frames *stack, size_t first, struct extent extent,
	struct gpc_text *ret_text)
{
	const struct gpc_frame *site = &stack->frames[first];
	/* A function without a file stands in a module, which is said once, at the end. */
	bool has_module = !site->file && site->function && !site->is_python;
	GPC_TEXT(words, MAX_WORDS);
	GPC_TEXT(via, MAX_WORDS);
	const char *place, *name;

	gpc_frame_describe_site(site, &words);
	name = split(&words, extent.has_scope, &place);
	has_module = has_module && *place && *place != '(';
	gpc_text_add(ret_text, "%s%s%s", name, *place && !has_module ? " " : "",
		has_module ? "" : place);
	if (extent.has_via && (int)first == stack->site)
		gpc_frames_via(stack, &via);
	if (via.len)
		gpc_text_add(ret_text, ", via %s", via.buf);
	for (size_t i = first + 1; i < stack->n && extent.n_callers > 0; i++) {
		if (stack->frames[i].is_library)
			continue;
		add_caller(site, &stack->frames[i], extent.has_classes, ret_text);
		extent.n_callers--;
	}
	if (has_module)
		gpc_text_add(ret_text, " (%s)", place);
}

void gpc_frames_chain(const struct gpc_stack_frames *stack, size_t first, unsigned n_callers,
	struct gpc_text *ret_text)
{
	add_chain(stack, first, (struct extent){ n_callers > 0, true, true, n_callers }, ret_text);
}

void gpc_frames_fit(const struct gpc_stack_frames *stack, bool has_via, struct gpc_text *ret_text)
{
	static const struct extent extents[] = { { true, true, true, GPC_SITE_CALLERS },
		{ true, true, false, GPC_SITE_CALLERS }, { true, true, false, 3 },
		{ true, true, false, 2 }, { true, true, false, 1 }, { false, true, false, 1 },
		{ false, true, false, 0 }, { false, false, false, 0 } };
	const struct gpc_text start = *ret_text;

	for (size_t i = 0; i < sizeof extents / sizeof extents[0]; i++) {
		struct extent extent = extents[i];

		extent.has_via &= has_via;
		*ret_text = start;
		ret_text->buf[start.len] = '\0';
		add_chain(stack, (size_t)stack->site, extent, ret_text);
		if (!ret_text->cut)
			return;
	}
}

void gpc_frames_via(const struct gpc_stack_frames *stack, struct gpc_text *ret_text)
{
	const struct gpc_frame *frame = stack->via >= 0 ? &stack->frames[stack->via] : NULL;

	if (frame && !frame->function && frame->module)
		gpc_text_add(ret_text, "%s", gpc_base_name(frame->module));
	else if (frame && frame->function && !gpc_name_operator(frame->function, ret_text))
		gpc_name_short(frame->function, ret_text);
}

void gpc_frame_describe_site(const struct gpc_frame *frame, struct gpc_text *ret_text)
{
	if (frame->is_library && frame->function && gpc_name_node(frame->function, ret_text))
		gpc_text_add(ret_text, "  (backward pass)");
	else
		gpc_frame_describe(frame, false, ret_text);
}

void gpc_frames_place(const struct gpc_stack_frames *stack, uint32_t id, unsigned n_callers,
	struct gpc_text *ret_text)
{
	if (id == 0)
		gpc_text_add(ret_text, "(no stack was taken)");
	else if (!stack || stack->site < 0)
		gpc_text_add(ret_text, "(stack %u was not recorded)", (unsigned)id);
	else
		gpc_frames_chain(stack, (size_t)stack->site, n_callers, ret_text);
}
