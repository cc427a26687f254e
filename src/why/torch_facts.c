/* SPDX-License-Identifier: Apache-2.0 */
/* Each function set_*() finds one group of facts, from the purposes of the memory (purposes.h) and the frames. */
#include "why/torch_facts.h"

#include <string.h>

#include "model/torch.h"
#include "why/checkpoints.h"
#include "why/evaluation.h"
#include "why/kept_models.h"
#include "why/kept_results.h"
#include "why/libraries.h"
#include "why/numbers.h"
#include "why/purposes.h"
#include "why/torch_stacks.h"
#include "why/trainers.h"
#include "why/words.h"

/* The most purposes that gpc_say_held() names. */
#define N_HELD 3

/* A checkpoint may have the optimizer's state, too: three times as much as the model. */
#define LOADED_PART 4

/* Fewer parts may be those of a skip connection. */
#define PARTS 8

/* The file of PyTorch that loads checkpoints. */
#define LOADER "/torch/serialization.py"

struct search {
	const struct gpc_evidence *evidence;
	const struct gpucache_oom *oom;
	struct gpc_facts *facts;
	struct gpc_torch_texts *texts;
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	uint32_t growing; /* the stack whose growth is told; 0: none */
};

static const struct gpc_stack_frames *frames_of(const struct search *search, uint32_t stack)
{
	return gpc_evidence_frames(search->evidence, stack);
}

static enum gpc_purpose purpose_of(const struct search *search, uint32_t stack)
{
	return gpc_purpose_of(frames_of(search, stack));
}

/* The place of a stack, in a buffer of the caller. */
static const char *place_of(const struct search *search, uint32_t stack, char buf[GPC_PLACE_SIZE])
{
	struct gpc_text text = gpc_text_init(buf, GPC_PLACE_SIZE);

	gpc_frames_place(frames_of(search, stack), stack, GPC_SITE_CALLERS, &text);
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

static bool has_file(const struct gpc_stack_frames *stack, const char *part)
{
	return gpc_passes_library(stack, part, NULL);
}

/* ---- what the memory is for ---- */

static uint64_t sum_purposes(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_purpose_row rows[GPC_N_PURPOSES])
{
	gpc_purpose_rows_init(rows);
	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];
		const struct gpc_purpose_share share = { holder->stack, holder->bytes,
			holder->n_blocks };

		gpc_purpose_rows_add(
			rows, gpc_purpose_of(gpc_evidence_frames(evidence, holder->stack)), &share);
	}
	return gpc_purpose_rows_sort(rows);
}

/* Same site, and the same callers of it, as far as `n_callers`. */
static bool is_same_chain(
	const struct gpc_evidence *evidence, uint32_t a, uint32_t b, unsigned n_callers)
{
	GPC_TEXT(site_a, GPC_PLACE_SIZE);
	GPC_TEXT(site_b, GPC_PLACE_SIZE);
	const struct gpc_stack_frames *stack_a = gpc_evidence_frames(evidence, a);
	const struct gpc_stack_frames *stack_b = gpc_evidence_frames(evidence, b);

	/* Nearly all that differ do so by the line, and need no text. */
	if (stack_a && stack_b && stack_a->site >= 0 && stack_b->site >= 0 &&
		stack_a->frames[stack_a->site].line != stack_b->frames[stack_b->site].line)
		return false;
	gpc_frames_place(stack_a, a, n_callers, &site_a);
	gpc_frames_place(stack_b, b, n_callers, &site_b);
	return strcmp(site_a.buf, site_b.buf) == 0;
}

/* True if the place of the row's largest part has nearly all of it, on whatever paths. */
static bool is_of_one_place(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	const struct gpc_purpose_row *row)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (gpc_purpose_of(gpc_evidence_frames(evidence, oom->holders[i].stack)) ==
				row->purpose &&
			is_same_chain(evidence, oom->holders[i].stack, row->stack, 0))
			bytes = gpc_bytes_add(bytes, oom->holders[i].bytes);
	return bytes >= row->bytes / 10 * 9;
}

void gpc_say_held(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_text *ret_text)
{
	struct gpc_purpose_row rows[GPC_N_PURPOSES];
	uint64_t bytes;

	if (!gpc_is_of_torch(oom))
		return;
	bytes = sum_purposes(evidence, oom, rows);
	for (unsigned i = 0; i < N_HELD && rows[i].bytes && rows[i].bytes >= bytes / 100; i++) {
		gpc_text_add_amounts(ret_text, i ? ", @" : "@", rows[i].bytes);
		/* The place of the largest part must not read as that of all.  A checkpoint has more than weights. */
		gpc_text_add(ret_text, " %s%s (%s", gpc_purpose_words(rows[i].purpose),
			gpc_passes_library(
				gpc_evidence_frames(evidence, rows[i].stack), LOADER, NULL)
				? ", or a loaded checkpoint"
				: "",
			is_of_one_place(evidence, oom, &rows[i]) ? "" : "among others ");
		gpc_frames_place(
			gpc_evidence_frames(evidence, rows[i].stack), rows[i].stack, 0, ret_text);
		gpc_text_add(ret_text, ")");
	}
}

/* The callers of the two may differ. */
static bool is_same_site(const struct search *search, uint32_t a, uint32_t b)
{
	return is_same_chain(search->evidence, a, b, 0);
}

/* True in a function that makes a model, such as Block.__init__. */
static bool makes_model(const struct gpc_frame *frame)
{
	const char *dot = frame->function ? strrchr(frame->function, '.') : NULL;

	return frame->is_python && dot && strcmp(dot, ".__init__") == 0;
}

/* True if the two are the same place, or places of one constructor. */
static bool is_same_model(const struct search *search, uint32_t a, uint32_t b)
{
	const struct gpc_stack_frames *stack_a = frames_of(search, a);
	const struct gpc_stack_frames *stack_b = frames_of(search, b);
	size_t n = 0;

	if (is_same_site(search, a, b))
		return true;
	if (!stack_a || !stack_b)
		return false;
	while (n < stack_a->n && n < stack_b->n &&
		stack_a->frames[stack_a->n - 1 - n].place ==
			stack_b->frames[stack_b->n - 1 - n].place)
		n++;
	return n < stack_a->n && makes_model(&stack_a->frames[stack_a->n - 1 - n]);
}

/* How many blocks of the same place, for the same module and caller, were freed: in steps that are over. */
static uint64_t count_freed(const struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	struct gpucache_site site;
	uint64_t n = 0;

	for (uint64_t i = 0; i < search->evidence->n_sites; i++)
		if (gpc_evidence_site(search->evidence, i, oom->device, &site) &&
			is_same_chain(search->evidence, site.stack, oom->stack, 1))
			n = gpc_bytes_add(n, site.total_blocks);
	/* Live at the failure: its tensors may be freed by now. */
	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (is_same_chain(search->evidence, oom->holders[i].stack, oom->stack, 1))
			n = gpc_bytes_less(n, oom->holders[i].n_blocks);
	return n;
}

/* True if a call of torch.cat or torch.stack asks for what its parts hold, made by one line that keeps them. */
static bool joins_parts(const struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpc_stack_frames *asking = frames_of(search, oom->stack);
	const struct gpucache_holder *parts = oom->holders;
	GPC_TEXT(via, 200);

	if (!asking || !oom->n_holders || parts->n_blocks < PARTS ||
		parts->bytes < oom->torch.requested / 8 * 7)
		return false;
	gpc_frames_via(asking, &via);
	return oom->torch.requested &&
	       (strcmp(via.buf, "cat") == 0 || strcmp(via.buf, "stack") == 0);
}

/* With a backward pass to come many results stay, without one the last few: what skips layers, and the parts of one. */
static void set_activations(struct search *search, const struct gpc_purpose_row *activations)
{
	struct gpc_text text = gpc_text_init(
		search->texts->checkpoint_place, sizeof search->texts->checkpoint_place);
	struct gpc_facts *facts = search->facts;

	if (!activations->stack)
		return;
	facts->activations_place =
		place_of(search, activations->stack, search->texts->activations_place);
	facts->is_generating = truth(
		gpc_torch_is_decorated(frames_of(search, activations->stack)) ||
		(facts->is_in_backward != GPC_YES && activations->n_blocks < GPC_FOR_BACKWARD));
	gpc_checkpoint_place(search->evidence, search->oom, activations->stack, &text);
	if (text.len)
		facts->checkpoint_place = text.buf;
}

static void set_purposes(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpc_purpose_row *weights;
	const struct gpc_purpose_row *activations;
	const struct gpc_purpose_row *inputs;
	struct gpc_facts *facts = search->facts;
	const struct gpc_stack_frames *asking = frames_of(search, oom->stack);

	facts->asked_purpose = purpose_of(search, oom->stack);
	facts->is_in_backward = truth(gpc_torch_passes_node(asking));
	facts->is_joined = truth(joins_parts(search));
	facts->freed_before = count_freed(search);
	if (search->growing)
		facts->growth_purpose = purpose_of(search, search->growing);
	weights = gpc_purpose_row_of(search->rows, GPC_PURPOSE_WEIGHTS);
	activations = gpc_purpose_row_of(search->rows, GPC_PURPOSE_ACTIVATIONS);
	inputs = gpc_purpose_row_of(search->rows, GPC_PURPOSE_INPUTS);
	facts->weights = weights->bytes;
	facts->optimizer = gpc_purpose_row_of(search->rows, GPC_PURPOSE_OPTIMIZER)->bytes;
	facts->gradients = gpc_purpose_row_of(search->rows, GPC_PURPOSE_GRADIENTS)->bytes;
	facts->activations = activations->bytes;
	facts->asks_foreach = truth(gpc_passes_library(asking, "/optim/", "_multi_tensor_"));
	facts->is_sgd = truth(has_file(asking, "/optim/sgd.py"));
	facts->optimizer_less =
		facts->is_sgd == GPC_YES ? "SGD without momentum has none" : GPC_OPTIMIZERS;
	if (weights->stack_bytes >= oom->short_by && weights->stack &&
		!is_same_model(search, weights->stack, oom->stack)) {
		facts->weights_place =
			place_of(search, weights->stack, search->texts->weights_place);
		facts->weights_there = weights->stack_bytes;
	}
	if (inputs->stack_bytes >= oom->short_by && inputs->stack) {
		facts->inputs_place = place_of(search, inputs->stack, search->texts->inputs_place);
		facts->inputs = inputs->stack_bytes;
	}
	facts->is_small =
		truth(oom->n_holders && oom->holders[0].n_blocks &&
			oom->holders[0].bytes / oom->holders[0].n_blocks < GPC_TORCH_MIN_LARGE);
	facts->is_top_asking =
		truth(oom->n_holders && is_same_site(search, oom->holders[0].stack, oom->stack));
	set_activations(search, activations);
}

/* ---- which line keeps what grows ---- */

/* True if torch.cat makes the growing blocks, and most of what it made there before is freed. */
static bool is_appended(const struct search *search, const struct gpc_stack_frames *stack,
	const struct gpucache_holder *growing)
{
	uint64_t first_ns;
	GPC_TEXT(via, 200);

	gpc_frames_via(stack, &via);
	return strcmp(via.buf, "cat") == 0 &&
	       !(growing && gpc_kept_most(search->evidence, search->oom, growing, &first_ns));
}

/* What one line keeps of one operation, on whatever path: a hook keeps what each layer of a kind makes. */
static uint64_t bytes_of_call(const struct search *search, uint32_t stack)
{
	uint64_t bytes = 0;
	GPC_TEXT(via, 200);

	gpc_frames_via(frames_of(search, stack), &via);
	for (uint32_t i = 0; i < search->oom->n_holders; i++) {
		const struct gpucache_holder *holder = &search->oom->holders[i];
		GPC_TEXT(also, 200);

		if (!is_same_site(search, holder->stack, stack))
			continue;
		gpc_frames_via(frames_of(search, holder->stack), &also);
		if (strcmp(also.buf, via.buf) == 0)
			bytes = gpc_bytes_add(bytes, holder->bytes);
	}
	return bytes;
}

/*
 * True if the program keeps a single result of each pass.  If it kept all that the backward pass needs, other call
 * sites would hold activations, too, or the inputs would stay.
 */
static bool is_result_alone(const struct search *search, const struct gpucache_holder *growing)
{
	const struct gpc_purpose_row *all =
		gpc_purpose_row_of(search->rows, GPC_PURPOSE_ACTIVATIONS);
	const struct gpc_facts *facts = search->facts;
	/* The largest ones: the labels of the batches may stay, too. */
	const struct gpucache_holder *inputs = gpc_holder_of(
		search->oom, gpc_purpose_row_of(search->rows, GPC_PURPOSE_INPUTS)->stack);
	uint32_t n_inputs = inputs ? inputs->n_blocks : 0;
	/* The inputs of the passes stay, though each has several results. */
	bool keeps_inputs =
		facts->kept_passes != GPUCACHE_UNKNOWN && n_inputs > facts->kept_passes / 2;

	return growing && bytes_of_call(search, growing->stack) >= all->bytes / 8 * 7 &&
	       !keeps_inputs && n_inputs < growing->n_blocks / 2;
}

/* True if a gradient was made on the device after `since_ns`. */
static bool made_gradients(const struct search *search, uint64_t since_ns)
{
	struct gpucache_site site;

	for (uint64_t i = 0; i < search->evidence->n_sites; i++)
		if (gpc_evidence_site(search->evidence, i, search->oom->device, &site) &&
			site.last_ns > since_ns &&
			purpose_of(search, site.stack) == GPC_PURPOSE_GRADIENTS)
			return true;
	return false;
}

/* The line of the program that runs most backward passes: each makes a gradient of its result. */
static const char *find_backward(struct search *search)
{
	struct gpucache_site site;
	uint64_t most = 0;
	uint32_t found = 0;

	for (uint64_t i = 0; i < search->evidence->n_sites; i++) {
		const struct gpc_stack_frames *stack;

		if (!gpc_evidence_site(search->evidence, i, search->oom->device, &site) ||
			site.total_blocks <= most)
			continue;
		stack = frames_of(search, site.stack);
		if (!has_file(stack, "/torch/autograd/__init__.py") ||
			!gpc_torch_is_of_program(&stack->frames[stack->site]))
			continue;
		most = site.total_blocks;
		found = site.stack;
	}
	return found ? place_of(search, found, search->texts->backward_place) : NULL;
}

/* True if what grows is allocated while a CUDA graph is captured. */
static bool is_captured(const struct search *search)
{
	struct gpucache_site site;

	return gpc_evidence_find_site(
		       search->evidence, search->oom->device, search->growing, &site) &&
	       site.flags & GPUCACHE_SITE_CAPTURED;
}

static void set_growth(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	struct gpc_facts *facts = search->facts;
	const struct gpucache_holder *growing = gpc_holder_of(oom, search->growing);
	const struct gpc_stack_frames *stack = frames_of(search, search->growing);
	uint64_t first_ns = GPUCACHE_UNKNOWN;
	int user;

	if (!stack)
		return;
	user = gpc_torch_user_of(stack);
	if (growing)
		(void)gpc_kept_most(search->evidence, oom, growing, &first_ns);
	if (first_ns != GPUCACHE_UNKNOWN)
		facts->had_backward = truth(made_gradients(search, first_ns));
	facts->backward_place = find_backward(search);
	facts->loop_place = chain_in(stack, user, search->texts->loop_place);
	if (user >= 0 && user != stack->site) {
		struct gpc_text text = gpc_text_init(search->texts->maker_place, GPC_PLACE_SIZE);

		gpc_frames_place(stack, search->growing, 0, &text);
		facts->maker_place = text.buf;
	}
	facts->evaluation_place =
		chain_in(stack, gpc_evaluation_find(stack), search->texts->evaluation_place);
	facts->is_in_function = truth(gpc_torch_is_in_function(stack));
	facts->is_captured = truth(is_captured(search));
	facts->is_appended = truth(is_appended(search, stack, growing));
	facts->is_result_alone =
		truth(gpc_torch_is_decorated(stack) || is_result_alone(search, growing));
}

/* Where the windows of the run show no growth, models may. */
static void set_models(struct search *search)
{
	struct gpc_kept_models models = gpc_kept_models_find(search->evidence, search->oom);
	struct gpc_facts *facts = search->facts;

	if (!models.stack || (facts->growth != GPUCACHE_UNKNOWN && facts->growth >= models.bytes))
		return;
	facts->growth_site = models.stack;
	facts->growth = models.bytes;
	facts->growth_held = facts->growth_total = models.held;
	facts->growth_blocks = models.n_blocks;
	facts->is_renewed = facts->needs_more = GPC_NO;
	facts->is_repeated = GPC_YES;
}

static void set_kept(struct search *search)
{
	struct gpc_kept kept = gpc_kept_find(search->evidence, search->oom);
	struct gpc_facts *facts = search->facts;

	facts->is_one_pass = truth(gpc_kept_may_be_one_pass(search->evidence, search->oom));
	facts->is_one_model = truth(gpc_kept_may_be_one_model(search->evidence, search->oom));
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
	const uint64_t weights = gpc_purpose_row_of(search->rows, GPC_PURPOSE_WEIGHTS)->bytes;
	const struct gpucache_holder *biggest = NULL;
	uint64_t loaded = 0;

	for (uint32_t i = 0; i < search->oom->n_holders; i++) {
		const struct gpucache_holder *holder = &search->oom->holders[i];

		if (!has_file(frames_of(search, holder->stack), LOADER))
			continue;
		loaded = gpc_bytes_add(loaded, holder->bytes);
		if (!biggest || holder->bytes > biggest->bytes)
			biggest = holder;
	}
	if (!biggest || loaded < search->oom->short_by ||
		gpc_bytes_less(weights, loaded) < loaded / LOADED_PART)
		return;
	search->facts->loaded_place = place_of(search, biggest->stack, search->texts->loaded_place);
	search->facts->loaded_bytes = loaded;
}

/* Finds the largest copy that the program made of a module. */
static void set_copied(struct search *search)
{
	const struct gpucache_holder *biggest = NULL;

	for (uint32_t i = 0; i < search->oom->n_holders; i++) {
		const struct gpucache_holder *holder = &search->oom->holders[i];

		if (gpc_torch_is_copied(frames_of(search, holder->stack)) &&
			(!biggest || holder->bytes > biggest->bytes))
			biggest = holder;
	}
	if (!biggest || biggest->bytes < search->oom->short_by)
		return;
	search->facts->copy_place = place_of(search, biggest->stack, search->texts->copy_place);
	search->facts->copy_bytes = biggest->bytes;
}

/*
 * True if at an earlier failure the holder's stack already held 3/4 of what it holds now.  A failure of a tensor of the
 * same size may be of the same tensor, for which PyTorch asks the driver twice: skips it.
 */
static bool held_earlier(const struct search *search, const struct gpucache_holder *holder)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpucache_holder *then;
	struct gpucache_oom earlier;

	for (uint64_t number = oom->number; number-- > 1;) {
		if (!search->evidence->find_oom(search->evidence->self, number, &earlier) ||
			earlier.device != oom->device || !earlier.torch.requested ||
			earlier.torch.requested == oom->torch.requested)
			continue;
		then = gpc_holder_of(&earlier, holder->stack);
		if (then && then->bytes >= holder->bytes / 4 * 3)
			return true;
	}
	return false;
}

/* A function that evaluates asks for more, and keeps what only a backward pass would need. */
static void set_validating(struct search *search)
{
	const struct gpc_stack_frames *asking = frames_of(search, search->oom->stack);
	int at = asking ? gpc_evaluation_find(asking) : -1;

	if (at >= 0 && !gpc_torch_is_decorated(asking) &&
		gpc_evaluation_keeps(search->evidence, search->oom, &asking->frames[at]))
		search->facts->validating_place =
			chain_in(asking, at, search->texts->validating_place);
}

/* Finds tensors of a failed step that its exception keeps alive: the program tries again in the `except` block. */
static void set_failed(struct search *search)
{
	const struct gpucache_oom *oom = search->oom;
	const struct gpucache_holder *biggest = NULL;
	uint64_t first_ns;
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < oom->n_holders && oom->torch.requested; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];

		if (purpose_of(search, holder->stack) != GPC_PURPOSE_ACTIVATIONS ||
			!gpc_kept_most(search->evidence, oom, holder, &first_ns) ||
			!held_earlier(search, holder))
			continue;
		bytes = gpc_bytes_add(bytes, holder->bytes);
		if (!biggest || holder->bytes > biggest->bytes)
			biggest = holder;
	}
	if (!biggest || bytes < oom->short_by)
		return;
	search->facts->failed_bytes = bytes;
	search->facts->failed_place = place_of(search, biggest->stack, search->texts->failed_place);
}

/* False if a thread of PyTorch's own asks, outside the nodes of a backward pass: that says nothing of the program. */
static bool is_place(const struct search *search)
{
	const struct gpc_stack_frames *stack = frames_of(search, search->oom->stack);
	const struct gpc_frame *site =
		stack && stack->site >= 0 ? &stack->frames[stack->site] : NULL;
	const struct gpc_library_row *row =
		site && !site->is_python && site->module ? gpc_library_row_of(site->module) : NULL;

	return !row || !row->name || strcmp(row->name, "PyTorch") != 0 ||
	       gpc_torch_passes_node(stack);
}

void gpc_torch_facts(const struct gpc_evidence *evidence, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_torch_texts *texts)
{
	struct search search = { .evidence = evidence, .oom = oom, .facts = facts, .texts = texts };

	if (!gpc_is_of_torch(oom))
		return;
	if (!is_place(&search))
		facts->asked_site = GPUCACHE_UNKNOWN;
	facts->by_purpose = sum_purposes(evidence, oom, search.rows);
	set_models(&search);
	set_kept(&search);
	set_purposes(&search);
	set_growth(&search);
	gpc_trainers_find(evidence, oom, facts);
	set_loaded(&search);
	set_copied(&search);
	set_failed(&search);
	set_validating(&search);
	facts->is_checkpointed =
		truth(has_file(frames_of(&search, oom->stack), "/torch/utils/checkpoint.py"));
}
