/* SPDX-License-Identifier: Apache-2.0 */
/* Each function set_*() finds one group of facts, from the purposes of the memory (purposes.h) and the frames. */
#include "tools/gpumem-report/why/named_facts.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "format/memory.h"
#include "tools/gpumem-report/holders/by_library.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/purposes.h"
#include "tools/gpumem-report/why/kept_results.h"

/* The most purposes that gpc_say_held() names. */
#define N_HELD 3

/* A framework's own pool: at least 1/POOL_PART of the device, in at most POOL_BLOCKS blocks. */
#define POOL_PART   2
#define POOL_BLOCKS 4

/* The file of PyTorch that calls what torch.no_grad() and torch.inference_mode() decorate. */
#define DECORATOR "/torch/utils/_contextlib.py"

struct search {
	const struct gpc_report *report;
	const struct gpucache_oom *oom;
	struct gpc_facts *facts;
	struct gpc_named_texts *texts;
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	uint32_t growing; /* the stack whose growth is told; 0: none */
};

/* The place of a stack, in a buffer of the caller. */
static const char *place_of(const struct search *search, uint32_t stack, char buf[GPC_PLACE_SIZE])
{
	struct gpc_text text = gpc_text_init(buf, GPC_PLACE_SIZE);

	gpc_frames_where(search->report->frames, stack, GPC_SITE_CALLERS, &text);
	return buf;
}

/* The chain from frame `first` on, in a buffer of the caller; first < 0: NULL. */
static const char *chain_in(
	const struct gpc_stack_frames *stack, int first, char buf[GPC_PLACE_SIZE])
{
	struct gpc_text text = gpc_text_init(buf, GPC_PLACE_SIZE);

	if (first < 0)
		return NULL;
	gpc_frames_chain(stack, (size_t)first, GPC_SITE_CALLERS, &text);
	return buf;
}

static uint64_t truth(bool value)
{
	return value ? GPC_YES : GPC_NO;
}

static const struct gpc_purpose_row *row_of(const struct search *search, enum gpc_purpose purpose)
{
	const struct gpc_purpose_row *row = search->rows;

	while (row->purpose != purpose)
		row++;
	return row;
}

/* True if a Python frame of the stack is in a file whose path contains `part. */
static bool has_file(const struct gpc_stack_frames *stack, const char *part)
{
	for (size_t i = 0; stack && i < stack->n; i++)
		if (stack->frames[i].is_python && stack->frames[i].file &&
			strstr(stack->frames[i].file, part))
			return true;
	return false;
}

/* ---- what the memory is for ---- */

/*
 * The blocks of a kind that were live when a request failed, and are still there, by their stacks, most bytes first.  The
 * caller frees *ret_rows.
 */
static size_t live_of_kind(const struct gpc_report *report, const struct gpucache_oom *oom,
	bool (*is_wanted)(unsigned kind), struct gpc_row **ret_rows)
{
	uint64_t count = report->recording->regions[GPUCACHE_REGION_BLOCKS].count;
	struct gpc_row *rows = gpc_new(count, sizeof *rows);
	struct gpucache_block block;
	size_t n = 0;

	for (uint64_t i = 0; i < count; i++)
		if (gpc_recording_read_block(report->recording, i, &block) &&
			block.state == GPUCACHE_BLOCK_LIVE && is_wanted(block.kind) &&
			block.time_ns <= oom->time_ns)
			rows[n++] = (struct gpc_row){
				.id = block.stack, .bytes = block.size, .n_blocks = 1
			};
	n = n ? gpc_rows_unite(rows, n) : 0;
	gpc_rows_by_bytes(rows, n);
	*ret_rows = rows;
	return n;
}

static bool is_on_host(unsigned kind)
{
	return gpucache_kind_place(kind) == GPUCACHE_ON_HOST;
}

static bool is_context(unsigned kind)
{
	return kind == GPUCACHE_KIND_CONTEXT;
}

/* Appends what was pinned when a request failed: "2.50 MiB of pinned host memory, most of it (epoch pinned.py:19)". */
static void add_pinned(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *text)
{
	struct gpc_row *rows;
	size_t n = live_of_kind(report, oom, is_on_host, &rows);
	uint64_t bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes = gpc_bytes_add(bytes, rows[i].bytes);
	if (n) {
		gpc_text_add(text, "%s of pinned host memory, most of it (", gpc_show_bytes(bytes));
		gpc_frames_where(report->frames, rows[0].id, 0, text);
		gpc_text_add(text, ")");
	}
	free(rows);
}

void gpc_say_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	struct gpc_holdings holdings;
	uint64_t bytes;

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST) {
		add_pinned(report, oom, ret_text);
		return;
	}
	if (!oom->torch.reserved)
		return;
	gpc_holdings_from_oom(&holdings, report, oom);
	bytes = gpc_purposes_sum(&holdings, report, rows);
	gpc_holdings_fini(&holdings);
	for (unsigned i = 0; i < N_HELD && rows[i].bytes; i++) {
		if (rows[i].bytes < bytes / 100)
			break;
		gpc_text_add(ret_text, "%s%s %s (", i ? ", " : "", gpc_show_bytes(rows[i].bytes),
			gpc_purpose_words(rows[i].purpose));
		gpc_frames_where(report->frames, rows[i].stack, 0, ret_text);
		gpc_text_add(ret_text, ")");
	}
}

/* The callers of the two may differ. */
static bool is_same_site(const struct search *search, uint32_t a, uint32_t b)
{
	GPC_TEXT(site_a, GPC_PLACE_SIZE);
	GPC_TEXT(site_b, GPC_PLACE_SIZE);

	gpc_frames_where(search->report->frames, a, 0, &site_a);
	gpc_frames_where(search->report->frames, b, 0, &site_b);
	return strcmp(site_a.buf, site_b.buf) == 0;
}

static void set_purposes(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpc_purpose_row *weights;
	const struct gpc_purpose_row *activations;
	struct gpc_facts *facts = search->facts;
	const struct gpc_stack_frames *asking = gpc_frames_find(search->report->frames, oom->stack);

	facts->asked_purpose = gpc_purpose_of(search->report, oom->stack);
	if (search->growing)
		facts->growth_purpose = gpc_purpose_of(search->report, search->growing);
	weights = row_of(search, GPC_PURPOSE_WEIGHTS);
	activations = row_of(search, GPC_PURPOSE_ACTIVATIONS);
	facts->weights = weights->bytes;
	facts->optimizer = row_of(search, GPC_PURPOSE_OPTIMIZER)->bytes;
	facts->gradients = row_of(search, GPC_PURPOSE_GRADIENTS)->bytes;
	facts->activations = activations->bytes;
	facts->optimizer_less = has_file(asking, "/optim/sgd.py") ? "SGD without momentum has none"
								  : "SGD, Adafactor, an 8-bit one";
	if (weights->stack_bytes >= oom->short_by && weights->stack &&
		!is_same_site(search, weights->stack, oom->stack)) {
		facts->weights_place =
			place_of(search, weights->stack, search->texts->weights_place);
		facts->weights_there = weights->stack_bytes;
	}
	if (activations->stack)
		facts->activations_place =
			place_of(search, activations->stack, search->texts->activations_place);
}

/* ---- which line keeps what grows ---- */

static bool is_of_program(const struct gpc_frame *frame)
{
	return frame->is_python && !frame->is_library && frame->function;
}

/* The innermost function of the program whose name suggests evaluation; -1: there is none. */
static int find_evaluation(const struct gpc_stack_frames *stack)
{
	static const char *const words[] = { "eval", "valid", "test", "infer", "predict",
		"generate", "sample" };

	for (size_t i = 0; i < stack->n; i++)
		for (size_t w = 0; w < sizeof words / sizeof words[0]; w++)
			if (is_of_program(&stack->frames[i]) &&
				strstr(stack->frames[i].function, words[w]))
				return (int)i;
	return -1;
}

/*
 * The line that uses a model, and may keep what it returned: the innermost one of the program but for those that PyTorch
 * called, as it calls each forward() and not what torch.no_grad() decorates.  Does not look beyond a trainer (Lightning, transformers) that calls the program
 * back: the functions beyond it wait for the trainer, and keep no results.  -1: there is none.
 */
static int find_user(const struct gpc_stack_frames *stack)
{
	bool is_called_back = false;
	int found = -1;

	for (size_t i = 0; i < stack->n; i++) {
		const struct gpc_frame *frame = &stack->frames[i];

		if (is_of_program(frame)) {
			if (found >= 0 && !is_called_back)
				break;
			found = (int)i;
			is_called_back = false;
		} else if (frame->is_python && found >= 0) {
			if (!frame->file || !strstr(frame->file, "/torch/"))
				break;
			is_called_back |= !strstr(frame->file, DECORATOR);
		}
	}
	return found;
}

/* True if torch.cat makes the growing blocks, and most of what it made there before is freed. */
static bool is_appended(const struct search *search, const struct gpc_stack_frames *stack,
	const struct gpucache_holder *growing)
{
	uint64_t first_ns;
	GPC_TEXT(via, 200);

	gpc_frames_via(stack, &via);
	return strcmp(via.buf, "cat") == 0 &&
	       !(growing && gpc_kept_most(search->report, search->oom, growing, &first_ns));
}

/*
 * True if the program keeps a single result of each pass.  If it kept all that the backward pass needs, other call
 * sites would hold activations, too, or the inputs would stay.
 */
static bool is_result_alone(const struct search *search, const struct gpucache_holder *growing)
{
	const struct gpc_purpose_row *all = row_of(search, GPC_PURPOSE_ACTIVATIONS);
	const struct gpc_purpose_row *inputs = row_of(search, GPC_PURPOSE_INPUTS);
	const struct gpc_facts *facts = search->facts;
	/* The inputs of the passes stay, though each has several results. */
	bool keeps_inputs =
		facts->kept_passes != GPUCACHE_UNKNOWN && inputs->n_blocks > facts->kept_passes / 2;

	return growing && growing->bytes >= all->bytes / 8 * 7 && !keeps_inputs &&
	       inputs->n_blocks < growing->n_blocks / 2;
}

/* True in a function that torch.no_grad() or torch.inference_mode() decorates, such as generate() of transformers. */
static bool is_decorated(const struct gpc_stack_frames *stack)
{
	return has_file(stack, DECORATOR);
}

/* True if a gradient was made on the device after `since_ns`. */
static bool made_gradients(const struct search *search, uint64_t since_ns)
{
	const struct gpc_recording *recording = search->report->recording;
	struct gpucache_site site;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_SITES].count; i++)
		if (gpc_recording_read_site(recording, i, &site) && site.stack &&
			(int32_t)site.device == search->oom->device && site.last_ns > since_ns &&
			gpc_purpose_of(search->report, site.stack) == GPC_PURPOSE_GRADIENTS)
			return true;
	return false;
}

/* The line of the program that runs most backward passes: each makes a gradient of its result. */
static const char *find_backward(struct search *search)
{
	const struct gpc_recording *recording = search->report->recording;
	struct gpucache_site site;
	uint64_t most = 0;
	uint32_t found = 0;

	for (uint64_t i = 0; i < recording->regions[GPUCACHE_REGION_SITES].count; i++) {
		const struct gpc_stack_frames *stack;

		if (!gpc_recording_read_site(recording, i, &site) || site.total_blocks <= most ||
			(int32_t)site.device != search->oom->device)
			continue;
		stack = gpc_frames_find(search->report->frames, site.stack);
		if (!has_file(stack, "/torch/autograd/__init__.py") ||
			!is_of_program(&stack->frames[stack->site]))
			continue;
		most = site.total_blocks;
		found = site.stack;
	}
	return found ? place_of(search, found, search->texts->backward_place) : NULL;
}

static void set_growth(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	struct gpc_facts *facts = search->facts;
	const struct gpucache_holder *growing = gpc_holdings_of_stack(oom, search->growing);
	const struct gpc_stack_frames *stack =
		gpc_frames_find(search->report->frames, search->growing);
	uint64_t first_ns = GPUCACHE_UNKNOWN;

	if (!stack)
		return;
	if (growing)
		(void)gpc_kept_most(search->report, oom, growing, &first_ns);
	if (first_ns != GPUCACHE_UNKNOWN)
		facts->had_backward = truth(made_gradients(search, first_ns));
	facts->backward_place = find_backward(search);
	facts->loop_place = chain_in(stack, find_user(stack), search->texts->loop_place);
	facts->evaluation_place =
		chain_in(stack, find_evaluation(stack), search->texts->evaluation_place);
	facts->is_appended = truth(is_appended(search, stack, growing));
	facts->is_result_alone = truth(is_decorated(stack) || is_result_alone(search, growing));
}

static void set_kept(struct search *search)
{
	struct gpc_kept kept = gpc_kept_find(search->report, search->oom);
	struct gpc_facts *facts = search->facts;

	facts->is_one_pass = truth(gpc_kept_may_be_one_pass(search->report, search->oom));
	search->growing = facts->growth_site != GPUCACHE_UNKNOWN ? (uint32_t)facts->growth_site : 0;
	if (!kept.stack)
		return;
	search->growing = kept.stack;
	facts->kept_passes = kept.n_passes - 1; /* the running one needs its own */
	facts->kept_bytes = kept.bytes;
}

/* ---- other reasons ---- */

/* Finds a checkpoint that torch.load put on the GPU, and that is still there after the model has copied it. */
static void set_loaded(struct search *search)
{
	const uint64_t weights = row_of(search, GPC_PURPOSE_WEIGHTS)->bytes;
	const struct gpucache_holder *biggest = NULL;
	uint64_t loaded = 0;

	for (uint32_t i = 0; i < search->oom->n_holders; i++) {
		const struct gpucache_holder *holder = &search->oom->holders[i];

		if (!has_file(gpc_frames_find(search->report->frames, holder->stack),
			    "/torch/serialization.py"))
			continue;
		loaded = gpc_bytes_add(loaded, holder->bytes);
		if (!biggest || holder->bytes > biggest->bytes)
			biggest = holder;
	}
	if (!biggest || loaded < search->oom->short_by ||
		gpc_bytes_less(weights, loaded) < loaded / 2)
		return;
	search->facts->loaded_place = place_of(search, biggest->stack, search->texts->loaded_place);
	search->facts->loaded_bytes = loaded;
}

/*
 * Returns the number of an earlier failure at which the holder's stack already held 3/4 of what it holds now; 0: none.
 * A failure of a tensor of the same size may be of the same tensor, for which PyTorch asks the driver twice: skips it.
 */
static uint64_t find_earlier(const struct search *search, const struct gpucache_holder *holder)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpucache_holder *then;
	struct gpucache_oom earlier;

	for (uint64_t number = oom->number; number-- > 1;) {
		if (!gpc_recording_find_oom(search->report->recording, number, &earlier) ||
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
static void set_failed(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpucache_holder *biggest = NULL;
	uint64_t number = 0;
	uint64_t first_ns;

	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (gpc_purpose_of(search->report, oom->holders[i].stack) ==
				GPC_PURPOSE_ACTIVATIONS &&
			(!biggest || oom->holders[i].bytes > biggest->bytes))
			biggest = &oom->holders[i];
	if (biggest && oom->torch.requested && biggest->bytes >= oom->short_by &&
		gpc_kept_most(search->report, oom, biggest, &first_ns))
		number = find_earlier(search, biggest);
	if (!number)
		return;
	search->facts->failed_step = number;
	search->facts->failed_bytes = biggest->bytes;
	search->facts->failed_place = place_of(search, biggest->stack, search->texts->failed_place);
}

/* Finds the largest holder, if it is a framework with an allocator of its own. */
static void set_framework(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	struct gpc_text less =
		gpc_text_init(search->texts->framework_less, sizeof search->texts->framework_less);
	const struct gpc_framework_row *framework;
	GPC_TEXT(library, 64);

	if (oom->n_holders == 0 || oom->balance.device_total == GPUCACHE_UNKNOWN ||
		oom->holders[0].n_blocks > POOL_BLOCKS ||
		oom->holders[0].bytes < oom->balance.device_total / POOL_PART)
		return;
	gpc_library_name(search->report->recording, oom->holders[0].stack, &library);
	framework = gpc_framework_of(library.buf);
	if (!framework)
		return;
	gpc_framework_add_less(framework, &less);
	search->facts->framework = framework->words;
	search->facts->framework_bytes = oom->holders[0].bytes;
	search->facts->framework_less = less.buf;
}

/* The primary context has the stack of the program's first call. */
static void set_contexts(struct search *search)
{
	struct gpc_row *rows;
	size_t n = live_of_kind(search->report, search->oom, is_context, &rows);

	if (n && rows[0].n_blocks > 1 && rows[0].id)
		search->facts->contexts_site = rows[0].id;
	free(rows);
}

static void set_top(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;

	if (oom->n_holders == 0)
		return;
	search->facts->top_site = oom->holders[0].stack;
	search->facts->top_held = oom->holders[0].bytes;
}

void gpc_named_facts(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts)
{
	struct search search = { .report = report, .oom = oom, .facts = facts, .texts = texts };
	struct gpc_holdings holdings;

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST) {
		facts->is_loader = truth(gpc_purpose_of(report, oom->stack) == GPC_PURPOSE_INPUTS);
		return;
	}
	set_top(&search);
	set_contexts(&search);
	set_framework(&search);
	if (!oom->torch.reserved)
		return;
	gpc_holdings_from_oom(&holdings, report, oom);
	facts->by_purpose = gpc_purposes_sum(&holdings, report, search.rows);
	gpc_holdings_fini(&holdings);
	set_kept(&search);
	set_purposes(&search);
	set_growth(&search);
	set_loaded(&search);
	set_failed(&search);
	facts->is_generating = truth(is_decorated(
		gpc_frames_find(report->frames, row_of(&search, GPC_PURPOSE_ACTIVATIONS)->stack)));
}
