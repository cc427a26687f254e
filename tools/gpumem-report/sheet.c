/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/gpumem-report/sheet.h"

#include <string.h>

/* Fewer native frames of libraries in a row are shown, each. */
#define LEAST_FOLDED 4

/* The longest label of base/balance_lines.def, and air. */
#define LABEL_WIDTH 31

static void print_row(const struct gpc_paper *paper, char sign, const char *label,
	const char *bytes, const char *share, const char *remark)
{
	fprintf(paper->out, "%*s%c %-*s%12s", GPC_PAPER_INDENT - 2, "", sign, LABEL_WIDTH, label,
		bytes);
	if (*share || *remark)
		fprintf(paper->out, "%9s", share);
	fprintf(paper->out, "%s%s\n", *remark ? "  " : "", remark);
}

static void remark_of(const struct gpucache_balance *balance, const struct gpc_balance_line *line,
	uint64_t wanted, char *buf, size_t size)
{
	uint64_t value = gpc_balance_value(balance, line);

	buf[0] = '\0';
	if (line == &gpc_balance_lines[GPC_BALANCE_LINE_cached] &&
		balance->cached_largest != GPUCACHE_UNKNOWN)
		snprintf(buf, size, "largest %s", gpc_show_bytes(balance->cached_largest));
	if (line == &gpc_balance_lines[GPC_BALANCE_LINE_device_free] && wanted > value)
		snprintf(buf, size, "%s wanted", gpc_show_bytes(wanted));
}

static void print_kinds(
	const struct gpc_paper *paper, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	unsigned int kind = GPUCACHE_KIND_NONE;
	char label[LABEL_WIDTH + 1];

	while ((kind = gpc_balance_next_kind(kind_bytes, kind)) != GPUCACHE_KIND_NONE) {
		snprintf(label, sizeof label, "  %s", gpc_kind_words(kind));
		print_row(paper, ' ', label, gpc_show_bytes(kind_bytes[kind]), "", "");
	}
}

/* With expandable segments PyTorch's memory is physical memory, which is a line of its own. */
static void print_torch(
	const struct gpc_paper *paper, const struct gpc_torch *torch, uint64_t requested)
{
	if (!torch->reserved || torch->reserved > requested)
		return;
	print_row(paper, ' ', "  in PyTorch's tensors", gpc_show_bytes(torch->in_tensors), "", "");
	print_row(paper, ' ', "  free in PyTorch's cache", gpc_show_bytes(torch->unused), "", "");
	print_row(
		paper, ' ', "  not PyTorch's", gpc_show_bytes(requested - torch->reserved), "", "");
}

void gpc_sheet_print(const struct gpc_report *report, const struct gpucache_balance *balance,
	const uint64_t kind_bytes[GPUCACHE_MAX_KINDS], const struct gpc_torch *torch,
	uint64_t wanted)
{
	const struct gpc_paper *paper = &report->paper;
	int64_t difference = gpc_balance_difference(balance);
	bool is_last_known_ours = false;
	char remark[64];
	char sign = ' ';

	for (unsigned i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		const struct gpc_balance_line *line = &gpc_balance_lines[i];
		uint64_t value = gpc_balance_value(balance, line);

		/* Behind our own lines: what they come to. */
		if (is_last_known_ours && !line->ours) {
			uint64_t taken = gpc_balance_taken(balance);

			print_row(paper, '=', "taken through gpucache", gpc_show_bytes(taken),
				gpc_show_share(taken, balance->device_total), "");
		}
		is_last_known_ours = line->ours;
		if (value == 0 && i != GPC_BALANCE_LINE_device_free &&
			i != GPC_BALANCE_LINE_requested)
			continue;
		remark_of(balance, line, wanted, remark, sizeof remark);
		print_row(paper, sign, line->label, gpc_show_bytes(value),
			gpc_show_share(value, balance->device_total), remark);
		if (i == GPC_BALANCE_LINE_requested)
			print_torch(paper, torch, value);
		if (i == GPC_BALANCE_LINE_direct)
			print_kinds(paper, kind_bytes);
		sign = '+';
	}
	if (difference < 0)
		snprintf(remark, sizeof remark, "difference -%s",
			gpc_show_bytes(0 - (uint64_t)difference));
	else
		snprintf(remark, sizeof remark, "difference %s",
			difference ? gpc_show_bytes((uint64_t)difference) : "0");
	print_row(paper, '=', "all of the GPU", gpc_show_bytes(balance->device_total), "100.0 %",
		remark);
}

/* Function and place on one line, or on two where they do not fit. */
static void print_frame(
	const struct gpc_paper *paper, const struct gpc_frame *frame, size_t number, bool is_site)
{
	char buf[600];
	struct gpc_text text = gpc_text_init(buf, sizeof buf);
	size_t function = frame->function ? strlen(frame->function) : 0;
	int used = fprintf(paper->out, "  %c #%-2zu ", is_site ? '>' : ' ', number);
	const char *begin = is_site ? gpc_paper_ink(paper, GPC_INK_BOLD) : "";
	const char *end = is_site ? gpc_paper_ink(paper, GPC_INK_PLAIN) : "";

	gpc_frame_describe(frame, true, &text);
	if (frame->is_inlined)
		gpc_text_add(&text, " (inlined)");
	if (function && (size_t)used + text.len > (size_t)paper->width && function + 2 < text.len)
		fprintf(paper->out, "%s%.*s\n%*s%s%s\n", begin, (int)function, buf, used + 2, "",
			buf + function + 2, end);
	else
		fprintf(paper->out, "%s%s%s\n", begin, buf, end);
}

/* The frame behind the native ones of libraries that begin at i; the site is not one of them. */
static size_t run_of_library(const struct gpc_stack_frames *stack, size_t i)
{
	while (i < stack->n && !stack->frames[i].is_python && stack->frames[i].is_library &&
		(int)i != stack->site)
		i++;
	return i;
}

/* "... 23 frames of libtorch_cpu.so, libtorch_cuda.so" */
static void print_folded(const struct gpc_paper *paper, const struct gpc_stack_frames *stack,
	size_t first, size_t end)
{
	char buf[200];
	struct gpc_text names = gpc_text_init(buf, sizeof buf);

	for (size_t i = first; i < end; i++) {
		const char *module = stack->frames[i].module;
		const char *name = module ? gpc_base_name(module) : "";

		/* A name may be the start of another: "libtorch.so", "libtorch.so.2". */
		if (*name && !strstr(buf, name))
			gpc_text_add(&names, "%s%s", names.len ? ", " : "", name);
	}
	fprintf(paper->out, "        ... %zu frames of %s\n", end - first, buf);
}

void gpc_stack_print(const struct gpc_report *report, uint32_t id, unsigned limit)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);
	const struct gpc_paper *paper = &report->paper;
	unsigned n_shown = 0;
	size_t n_more = 0;

	if (!stack) {
		fprintf(paper->out, "    %s\n",
			id ? "(its stack was not recorded)" : "(no stack was taken)");
		return;
	}
	for (size_t i = 0; i < stack->n;) {
		size_t end = limit ? run_of_library(stack, i) : i;

		if (end - i > LEAST_FOLDED) {
			print_frame(paper, &stack->frames[i], i, false);
			print_folded(paper, stack, i + 1, end);
			n_shown += 2;
			i = end;
		} else if (limit && n_shown >= limit && !stack->frames[i].is_python) {
			n_more++;
			i++;
		} else {
			print_frame(paper, &stack->frames[i], i, (int)i == stack->site);
			n_shown++;
			i++;
		}
	}
	if (n_more)
		fprintf(paper->out, "    ... %zu more\n", n_more);
	if (stack->flags & GPUCACHE_STACK_CUT)
		fprintf(paper->out, "    ... deeper than is recorded\n");
	if (stack->flags & GPUCACHE_STACK_NO_PYTHON)
		fprintf(paper->out, "    (its Python frames could not be read safely)\n");
}
