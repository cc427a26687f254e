/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lines of model/balance_lines.def are rounded together, so that they add up as printed; so are the parts of a
 * line.
 */
#include "tools/gpumem-report/output/balance_sheet.h"

#include <string.h>

/* A run of native library frames is folded if it is longer than this. */
#define LEAST_FOLDED 4

/* The longest label of model/balance_lines.def, and a margin. */
#define LABEL_WIDTH 31

/* From this width on, there is room for a margin. */
#define WHOLE_WIDTH 64

struct sheet_details {
	const uint64_t *kind_bytes; /* [GPUCACHE_MAX_KINDS] */
	const struct gpc_torch *torch;
	uint64_t wanted;
};

/* Prints a line, and the remark after it, or below it if there is no room.  Narrow output has no margin. */
static void print_line(const struct gpc_paper *paper, char sign, const char *label,
	const char *amount, const char *share, const char *remark)
{
	int margin = paper->width < WHOLE_WIDTH ? GPC_PAPER_INDENT - 6 : GPC_PAPER_INDENT - 2;
	int used =
		fprintf(paper->out, "%*s%c %-*s%12s", margin, "", sign, LABEL_WIDTH, label, amount);

	if (*share || *remark)
		used += fprintf(paper->out, "%9s", share);
	if (*remark && used + 2 + (int)strlen(remark) > paper->width)
		fprintf(paper->out, "\n%*s", margin + 2 + LABEL_WIDTH - 2, "");
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

/* Prints the parts of the line above. */
static void print_parts(const struct gpc_paper *paper, struct gpc_rounded of_line,
	const char *const labels[], const uint64_t parts[], size_t n)
{
	struct gpc_rounded amounts[GPUCACHE_MAX_KINDS];

	gpc_rounded_parts(of_line, parts, n, amounts);
	for (size_t i = 0; i < n; i++) {
		char label[LABEL_WIDTH + 1];

		snprintf(label, sizeof label, "  %s", labels[i]);
		print_line(paper, ' ', label, gpc_show_rounded(amounts[i]), "", "");
	}
}

static void print_kinds(const struct gpc_paper *paper, struct gpc_rounded of_line,
	const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	unsigned int kind = GPUCACHE_KIND_NONE;
	const char *labels[GPUCACHE_MAX_KINDS];
	uint64_t parts[GPUCACHE_MAX_KINDS];
	size_t n = 0;

	while ((kind = gpc_balance_next_kind(kind_bytes, kind)) != GPUCACHE_KIND_NONE) {
		labels[n] = gpc_kind_words(kind);
		parts[n++] = kind_bytes[kind];
	}
	print_parts(paper, of_line, labels, parts, n);
}

/* Prints nothing if PyTorch has more than was requested: its expandable segments are in the line of physical memory. */
static void print_torch(const struct gpc_paper *paper, struct gpc_rounded of_line,
	const struct gpc_torch *torch, uint64_t requested)
{
	static const char *const labels[] = { "in PyTorch's tensors", "free in PyTorch's cache",
		"not PyTorch's" };
	const uint64_t parts[] = { torch->in_tensors, torch->unused, requested - torch->reserved };

	if (torch->reserved && torch->reserved <= requested)
		print_parts(paper, of_line, labels, parts, 3);
}

/* Prints the lines that `taken through gpucache` sums up, or with `ours` false, all others. */
static void print_lines(const struct gpc_paper *paper, const struct gpucache_balance *balance,
	const struct gpc_balance_print *print, const struct sheet_details *details, bool ours)
{
	for (unsigned i = 0; i < GPC_BALANCE_LINE_COUNT; i++) {
		const struct gpc_balance_line *known = &gpc_balance_lines[i];
		uint64_t value = gpc_balance_value(balance, known);
		const char sign = i ? '+' : ' ';
		char remark[64];

		if (known->ours != ours || (value == 0 && i != GPC_BALANCE_LINE_device_free &&
						   i != GPC_BALANCE_LINE_requested))
			continue;
		if (value == GPUCACHE_UNKNOWN) {
			print_line(paper, sign, known->label, "unknown", "", "");
			continue;
		}
		remark_of(balance, known, details->wanted, remark, sizeof remark);
		print_line(paper, sign, known->label, gpc_show_rounded(print->lines[i]),
			balance->device_total ? gpc_show_tenths(print->shares[i]) : "", remark);
		if (i == GPC_BALANCE_LINE_requested)
			print_torch(paper, print->lines[i], details->torch, value);
		if (i == GPC_BALANCE_LINE_direct)
			print_kinds(paper, print->lines[i], details->kind_bytes);
	}
}

void gpc_sheet_print(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS],
	const struct gpucache_oom *oom)
{
	const struct gpc_torch torch = oom ? gpc_torch_at(oom) : gpc_torch_now(report, ordinal);
	const struct sheet_details details = { kind_bytes, &torch, oom ? oom->requested : 0 };
	const struct gpc_paper *paper = &report->paper;
	int64_t difference = gpc_balance_difference(balance);
	struct gpc_balance_print print;
	char remark[64];

	gpc_balance_round(balance, &print);
	print_lines(paper, balance, &print, &details, true);
	print_line(paper, '=', "taken through gpucache", gpc_show_rounded(print.taken),
		balance->device_total ? gpc_show_tenths(print.taken_share) : "", "");
	print_lines(paper, balance, &print, &details, false);
	snprintf(remark, sizeof remark, "difference %s%s", difference < 0 ? "-" : "",
		difference ? gpc_show_rounded(print.difference) : "0");
	print_line(paper, '=', "all of the GPU", gpc_show_rounded(print.total),
		gpc_show_tenths(1000), remark);
	gpc_torch_print_used(report, &torch, balance, kind_bytes);
}

/* Prints a frame on one line, or if it is too long, its function and its place on two. */
static void print_frame(
	const struct gpc_paper *paper, const struct gpc_frame *frame, size_t number, bool is_site)
{
	GPC_TEXT(text, 600);
	size_t function = frame->function ? strlen(frame->function) : 0;
	int used = fprintf(paper->out, "  %c #%-2zu ", is_site ? '>' : ' ', number);
	const char *begin = is_site ? gpc_paper_ink(paper, GPC_INK_BOLD) : "";
	const char *end = is_site ? gpc_paper_ink(paper, GPC_INK_PLAIN) : "";

	gpc_frame_describe(frame, true, &text);
	if (frame->is_inlined)
		gpc_text_add(&text, " (inlined)");
	if (function && (size_t)used + text.len > (size_t)paper->width && function + 2 < text.len)
		fprintf(paper->out, "%s%.*s\n%*s%s%s\n", begin, (int)function, text.buf, used + 2,
			"", text.buf + function + 2, end);
	else
		fprintf(paper->out, "%s%s%s\n", begin, text.buf, end);
}

/* Returns the end of the run of native library frames that begins at i; i: there is none.  The site ends a run. */
static size_t run_of_library(const struct gpc_stack_frames *stack, size_t i)
{
	while (i < stack->n && !stack->frames[i].is_python && stack->frames[i].is_library &&
		(int)i != stack->site)
		i++;
	return i;
}

/* Prints "... 23 frames of libtorch_cpu.so, libtorch_cuda.so". */
static void print_folded(const struct gpc_paper *paper, const struct gpc_stack_frames *stack,
	size_t first, size_t end)
{
	GPC_TEXT(names, 200);

	for (size_t i = first; i < end; i++) {
		const char *module = stack->frames[i].module;
		const char *name = module ? gpc_base_name(module) : "";

		/* One name may be a prefix of another: "libtorch.so", "libtorch.so.2". */
		if (*name && !strstr(names.buf, name))
			gpc_text_add(&names, "%s%s", names.len ? ", " : "", name);
	}
	fprintf(paper->out, "        ... %zu frames of %s\n", end - first, names.buf);
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
