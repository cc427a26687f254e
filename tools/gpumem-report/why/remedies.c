/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions try_* are rules, tried in the order of gpc_remedies_try().  A rule looks at the purpose of the memory
 * (purposes.h), and its advice names the program's line that it is about.
 */
#include "tools/gpumem-report/why/remedies.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/memory.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/holders/torch_pool.h"
#include "tools/gpumem-report/why/kept_results.h"

/* The most categories that gpc_remedies_held() names. */
#define N_HELD 3

/* A request for at least 1/LARGE_PART of the GPU is large by itself. */
#define LARGE_PART 8

struct facts {
	const struct gpc_report *report;
	const struct gpucache_oom *oom;
	struct gpc_category_row rows[GPC_CATEGORY_COUNT];
	uint64_t bytes; /* the sum of all rows */
	enum gpc_category asked;
	enum gpc_category growing; /* GPC_CATEGORY_COUNT: nothing grows */
};

static bool find_facts(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct facts *ret_facts)
{
	uint32_t verdicts = oom->also | 1u << oom->verdict;
	struct gpc_holdings holdings;

	*ret_facts = (struct facts){ .report = report, .oom = oom, .growing = GPC_CATEGORY_COUNT };
	if (!gpc_torch_at(report, oom).reserved)
		return false;
	gpc_holdings_from_oom(&holdings, report, oom);
	ret_facts->bytes = gpc_categories_sum(&holdings, report, ret_facts->rows);
	gpc_holdings_fini(&holdings);
	ret_facts->asked = gpc_category_of(report, oom->stack);
	if (oom->growth_stack && verdicts >> GPUCACHE_VERDICT_GROWTH & 1)
		ret_facts->growing = gpc_category_of(report, oom->growth_stack);
	return true;
}

/* Appends "function file:line", with a single blank, for a sentence. */
static void add_frame(const struct gpc_frame *frame, struct gpc_text *text)
{
	GPC_TEXT(words, 300);
	const char *gap;

	gpc_frame_describe_site(frame, &words);
	gap = strstr(words.buf, "  ");
	gpc_text_add(text, "%.*s%s", gap ? (int)(gap - words.buf) : (int)words.len, words.buf,
		gap ? gap + 1 : "");
}

void gpc_remedies_add_site(const struct gpc_report *report, uint32_t id, struct gpc_text *text)
{
	const struct gpc_stack_frames *stack = gpc_frames_find(report->frames, id);

	if (stack && stack->site >= 0)
		add_frame(&stack->frames[stack->site], text);
	else
		gpc_frames_site(report->frames, id, text);
}

/* Appends what was pinned when a request failed: "2.50 MiB of pinned host memory, most of it (epoch pinned.py:19)". */
static void add_pinned(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	uint64_t count = report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_row *rows = gpc_new(count, sizeof *rows);
	struct gpucache_block block;
	uint64_t bytes = 0;
	size_t n = 0;

	for (uint64_t i = 0; i < count; i++) {
		if (!gpc_recording_read_block(report->recording, i, &block) ||
			block.state != GPUCACHE_BLOCK_LIVE ||
			gpucache_kind_place(block.kind) != GPUCACHE_ON_HOST ||
			block.time_ns > oom->time_ns)
			continue;
		rows[n++] =
			(struct gpc_row){ .id = block.stack, .bytes = block.size, .n_blocks = 1 };
		bytes = gpc_bytes_add(bytes, block.size);
	}
	n = n ? gpc_rows_unite(rows, n) : 0;
	gpc_rows_by_bytes(rows, n);
	if (n) {
		gpc_text_add(text, "%s of pinned host memory, most of it (", gpc_show_bytes(bytes));
		gpc_remedies_add_site(report, rows[0].id, text);
		gpc_text_add(text, ").");
	}
	free(rows);
}

void gpc_remedies_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	struct facts facts;

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST) {
		add_pinned(report, oom, ret_text);
		return;
	}
	if (!find_facts(report, oom, &facts))
		return;
	for (unsigned i = 0; i < N_HELD && facts.rows[i].bytes; i++) {
		if (facts.rows[i].bytes < facts.bytes / 100)
			break;
		gpc_text_add(ret_text, "%s%s %s (", i ? ", " : "",
			gpc_show_bytes(facts.rows[i].bytes),
			gpc_category_word(facts.rows[i].category));
		gpc_remedies_add_site(report, facts.rows[i].stack, ret_text);
		gpc_text_add(ret_text, ")");
	}
	if (ret_text->len)
		gpc_text_add(ret_text, ".");
}

static const struct gpc_category_row *row_of(const struct facts *facts, enum gpc_category category)
{
	const struct gpc_category_row *row = facts->rows;

	while (row->category != category)
		row++;
	return row;
}

static bool is_of_program(const struct gpc_frame *frame)
{
	return frame->is_python && !frame->is_library && frame->function;
}

/* The innermost function of the program whose name suggests evaluation; NULL if there is none. */
static const struct gpc_frame *find_evaluation(const struct gpc_stack_frames *stack)
{
	static const char *const words[] = { "eval", "valid", "test", "infer", "predict",
		"generate", "sample" };

	for (size_t i = 0; stack && i < stack->n; i++)
		for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
			if (is_of_program(&stack->frames[i]) &&
				strstr(stack->frames[i].function, words[w]))
				return &stack->frames[i];
	return NULL;
}

/*
 * The outermost function of the program, whose locals live longest.  Does not look beyond a trainer (Lightning,
 * transformers) that calls the program back: the functions beyond it wait for the trainer, and keep no results.
 */
static const struct gpc_frame *find_outermost(const struct gpc_stack_frames *stack)
{
	const struct gpc_frame *found = NULL;

	for (size_t i = 0; stack && i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (found && frame->is_python && frame->is_library && frame->file &&
			!strstr(frame->file, "/torch/"))
			break;
		if (is_of_program(frame) && (!found || strcmp(frame->function, "<module>") != 0))
			found = frame;
	}
	return found;
}

/* True if torch.cat makes the growing blocks, and most of what it made there before is freed. */
static bool is_put_together(const struct facts *facts, const struct gpc_stack_frames *stack)
{
	const struct gpucache_holder *growing =
		gpc_holdings_of_stack(facts->oom, facts->oom->growth_stack);
	uint64_t first_ns;
	GPC_TEXT(via, 200);

	if (stack)
		gpc_frames_via(stack, &via);
	return strcmp(via.buf, "cat") == 0 &&
	       !(growing && gpc_kept_most(facts->report, facts->oom, growing, &first_ns));
}

/*
 * True if the program keeps a single result of each pass.  If it kept all that the backward pass needs, other call
 * sites would hold activations, too, or the site would hold several tensors per input, one per layer.
 */
static bool is_result_alone(const struct facts *facts)
{
	const struct gpucache_holder *growing =
		gpc_holdings_of_stack(facts->oom, facts->oom->growth_stack);
	const struct gpc_category_row *all = row_of(facts, GPC_CATEGORY_ACTIVATIONS);
	const struct gpc_category_row *inputs = row_of(facts, GPC_CATEGORY_INPUTS);

	return growing && growing->bytes >= all->bytes / 8 * 7 &&
	       (inputs->n_blocks < growing->n_blocks / 2 ||
		       growing->n_blocks <= inputs->n_blocks + 1);
}

/* True if a Python frame of the stack is in a file whose path contains `part`. */
static bool has_file(const struct gpc_stack_frames *stack, const char *part)
{
	for (size_t i = 0; stack && i < stack->n; i++)
		if (stack->frames[i].is_python && stack->frames[i].file &&
			strstr(stack->frames[i].file, part))
			return true;
	return false;
}

/* True in a function that torch.no_grad() or torch.inference_mode() decorates, such as generate() of transformers. */
static bool is_decorated(const struct gpc_stack_frames *stack)
{
	return has_file(stack, "/torch/utils/_contextlib.py");
}

static bool say_kept(
	const struct facts *facts, const struct gpc_stack_frames *stack, struct gpc_text *text)
{
	const struct gpc_frame *frame = find_evaluation(stack);
	bool is_alone = is_decorated(stack) || is_result_alone(facts);

	if (frame && !is_alone) {
		gpc_text_add(text, "`with torch.no_grad():` in ");
		add_frame(frame, text);
		gpc_text_add(text,
			": without it each result keeps all that a backward pass would need.");
		return true;
	}
	frame = find_outermost(stack);
	gpc_text_add(text, "%s",
		is_alone ? "one result of each pass stays on the GPU: keep only what is needed "
			   "of it (.item()), or move it to the host (.detach().cpu())"
			 : "each result kept holds all that its backward pass needs: keep "
			   "loss.item() or output.detach()");
	if (frame) {
		gpc_text_add(text, ", in ");
		add_frame(frame, text);
	}
	gpc_text_add(text, ".");
	return true;
}

void gpc_remedies_add_bound(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	gpc_text_add(text, "bound the size of what ");
	gpc_remedies_add_site(report, oom->growth_stack, text);
	gpc_text_add(text,
		" makes (a batch or an input that grows, a buffer that doubles): it replaces its "
		"blocks by "
		"larger ones.");
}

static bool try_growth(const struct facts *facts, struct gpc_text *text)
{
	const struct gpc_stack_frames *stack =
		gpc_frames_find(facts->report->frames, facts->oom->growth_stack);

	if (facts->growing == GPC_CATEGORY_COUNT)
		return false;
	if (is_put_together(facts, stack)) {
		gpc_text_add(text,
			"torch.cat copies it into a longer tensor at each step: bound its length, "
			"or write into a tensor of fixed size.");
		return true;
	}
	if (facts->oom->is_renewed) {
		gpc_remedies_add_bound(facts->report, facts->oom, text);
		return true;
	}
	return facts->growing == GPC_CATEGORY_ACTIVATIONS && stack && say_kept(facts, stack, text);
}

static bool try_optimizer(const struct facts *facts, struct gpc_text *text)
{
	if (facts->asked != GPC_CATEGORY_OPTIMIZER)
		return false;
	gpc_text_add(text,
		"an optimizer with less state (SGD, Adafactor, an 8-bit one), or its state "
		"sharded over GPUs (ZeRO, FSDP): so far it has %s",
		gpc_show_bytes(row_of(facts, GPC_CATEGORY_OPTIMIZER)->bytes));
	gpc_text_add(text, " for %s of weights.",
		gpc_show_bytes(row_of(facts, GPC_CATEGORY_WEIGHTS)->bytes));
	return true;
}

/* For a request of weights: advises to free those that another place of the program loaded, if they are enough. */
static bool try_weights(const struct facts *facts, struct gpc_text *text)
{
	const struct gpc_category_row *weights = row_of(facts, GPC_CATEGORY_WEIGHTS);
	GPC_TEXT(held, 200);
	GPC_TEXT(asked, 200);

	if (facts->asked != GPC_CATEGORY_WEIGHTS)
		return false;
	gpc_remedies_add_site(facts->report, weights->stack, &held);
	gpc_remedies_add_site(facts->report, facts->oom->stack, &asked);
	if (weights->stack_bytes >= facts->oom->short_by && strcmp(held.buf, asked.buf) != 0)
		gpc_text_add(text, "first move away what %s holds, %s (.cpu(), or del); or half ",
			held.buf, gpc_show_bytes(weights->stack_bytes));
	else
		gpc_text_add(text, "half ");
	gpc_text_add(text, "precision (dtype=torch.bfloat16), or layers split over GPUs.");
	return true;
}

static bool try_activations(const struct facts *facts, struct gpc_text *text)
{
	const struct gpc_category_row *row = row_of(facts, GPC_CATEGORY_ACTIVATIONS);
	const struct gpucache_oom *oom = facts->oom;
	bool is_large = oom->torch.requested >= oom->balance.device_total / LARGE_PART;

	if (facts->asked == GPC_CATEGORY_ACTIVATIONS && is_large) {
		gpc_text_add(text, "a smaller batch or a shorter input; or ");
		gpc_remedies_add_site(facts->report, oom->stack, text);
		gpc_text_add(text, " in parts: it asks for %s at once.",
			gpc_show_bytes(oom->torch.requested));
		return true;
	}
	if (row->bytes < facts->bytes / 2 || row->bytes < oom->short_by)
		return false;
	gpc_text_add(text, "%s",
		is_decorated(gpc_frames_find(facts->report->frames, row->stack))
			? "a smaller batch or a shorter input for "
			: "a smaller batch; or torch.utils.checkpoint around ");
	gpc_remedies_add_site(facts->report, row->stack, text);
	gpc_text_add(text, ": activations hold %s of the ", gpc_show_bytes(row->bytes));
	gpc_text_add(text, "%s.", gpc_show_bytes(facts->bytes));
	return true;
}

/* Advises empty_cache() if another library than PyTorch asked, and PyTorch has enough memory in no tensor. */
static bool try_empty_cache(const struct facts *facts, struct gpc_text *text)
{
	struct gpc_torch torch = gpc_torch_at(facts->report, facts->oom);
	GPC_TEXT(library, 64);

	if (torch.requested || torch.unused < facts->oom->short_by)
		return false;
	gpc_library_name(facts->report->recording, facts->oom->stack, &library);
	if (strcmp(library.buf, "PyTorch") == 0)
		return false;
	gpc_text_add(text,
		"torch.cuda.empty_cache() before this request of %s: %s of PyTorch's cache are "
		"in no tensor.",
		library.buf, gpc_show_bytes(torch.unused));
	return true;
}

/* Finds a checkpoint that torch.load put on the GPU, and that is still there after the model has copied it. */
static bool try_loaded(const struct facts *facts, struct gpc_text *text)
{
	const uint64_t weights = row_of(facts, GPC_CATEGORY_WEIGHTS)->bytes;
	const struct gpucache_holder *biggest = NULL;
	uint64_t loaded = 0;

	for (uint32_t i = 0; i < facts->oom->n_holders; i++) {
		const struct gpucache_holder *holder = &facts->oom->holders[i];

		if (!has_file(gpc_frames_find(facts->report->frames, holder->stack),
			    "/torch/serialization.py"))
			continue;
		loaded = gpc_bytes_add(loaded, holder->bytes);
		if (!biggest || holder->bytes > biggest->bytes)
			biggest = holder;
	}
	if (!biggest || loaded < facts->oom->short_by ||
		gpc_bytes_less(weights, loaded) < loaded / 2)
		return false;
	gpc_text_add(text, "torch.load(..., map_location=\"cpu\") in ");
	gpc_remedies_add_site(facts->report, biggest->stack, text);
	gpc_text_add(text,
		": %s of the checkpoint are on the GPU, in addition to the weights loaded from "
		"it; or del it.",
		gpc_show_bytes(loaded));
	return true;
}

/*
 * Returns the number of an earlier failure at which the holder's stack already held 3/4 of what it holds now; 0: none.
 * A failure of a tensor of the same size may be of the same tensor, for which PyTorch asks the driver twice: skips it.
 */
static uint64_t find_earlier(const struct facts *facts, const struct gpucache_holder *holder)
{
	const struct gpucache_oom *oom = facts->oom;
	const struct gpucache_holder *then;
	struct gpucache_oom earlier;

	for (uint64_t number = oom->number; number-- > 1;) {
		if (!gpc_recording_find_oom(facts->report->recording, number, &earlier) ||
			earlier.device != oom->device || !earlier.torch.requested ||
			earlier.torch.requested == oom->torch.requested)
			continue;
		then = gpc_holdings_of_stack(&earlier, holder->stack);
		if (then && then->bytes >= holder->bytes / 4 * 3)
			return number;
	}
	return 0;
}

/* Finds tensors of a failed step that its exception keeps alive: the program tries again in the `except` block. */
static bool try_failed(const struct facts *facts, struct gpc_text *text)
{
	const struct gpucache_oom *oom = facts->oom;
	const struct gpucache_holder *biggest = NULL;
	uint64_t number = 0;
	uint64_t first_ns;

	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (gpc_category_of(facts->report, oom->holders[i].stack) ==
				GPC_CATEGORY_ACTIVATIONS &&
			(!biggest || oom->holders[i].bytes > biggest->bytes))
			biggest = &oom->holders[i];
	if (biggest && oom->torch.requested && biggest->bytes >= oom->short_by &&
		gpc_kept_most(facts->report, oom, biggest, &first_ns))
		number = find_earlier(facts, biggest);
	if (!number)
		return false;
	gpc_text_add(text,
		"retry after the `except` block, not inside it: the exception keeps its frames "
		"alive, "
		"so failure %llu still holds what it had allocated, %s of ",
		(unsigned long long)number, gpc_show_bytes(biggest->bytes));
	gpc_remedies_add_site(facts->report, biggest->stack, text);
	gpc_text_add(text, ".");
	return true;
}

bool gpc_remedies_try(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	struct facts facts;

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST &&
		gpc_category_of(report, oom->stack) == GPC_CATEGORY_INPUTS) {
		gpc_text_add(ret_text,
			"do not keep batches of a loader with pin_memory=True: each one is pinned "
			"memory that nothing else can use. Copy what is needed, then drop the "
			"batch.");
		return true;
	}
	if (gpucache_kind_place(oom->kind) != GPUCACHE_ON_DEVICE ||
		!find_facts(report, oom, &facts))
		return false;
	return try_empty_cache(&facts, ret_text) || try_failed(&facts, ret_text) ||
	       (oom->verdict == GPUCACHE_VERDICT_GROWTH && try_growth(&facts, ret_text)) ||
	       try_loaded(&facts, ret_text) || try_optimizer(&facts, ret_text) ||
	       try_weights(&facts, ret_text) || try_activations(&facts, ret_text) ||
	       try_growth(&facts, ret_text);
}
