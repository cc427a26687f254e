/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the program could do, with the bytes that it saves by the recording.  Shares that depend on what no recording
 * shows - the type of the numbers, what a checkpoint keeps - are said as such.
 */
#include "tools/gpumem-report/cure/cure.h"
#include "why/numbers.h"
#include "why/words.h"

/* A change that saves less than this part of what is missing is not named. */
#define WORTH 8

/* What is known of a change that saves as much as was missing. */
enum reach {
	WHOLE,   /* steps like the one that failed were over before: what they needed is recorded */
	REQUEST, /* what the rest of the step asks for is not recorded */
	MOST,    /* it may save less */
};

struct change {
	uint64_t bytes; /* 0: unknown, the row is left out */
	enum reach reach;
	const char *words;
	const char *place;
};

static bool is_worth(const struct gpc_cure *cure, const struct change *change)
{
	const uint64_t missing = cure->failure.facts.short_by;

	return change->bytes && (missing == GPUCACHE_UNKNOWN || change->bytes >= missing / WORTH);
}

static void show(const struct gpc_cure *cure, struct gpc_document *doc, const struct change *change)
{
	static const char *const bounds[] = { "", "this request", "at most" };
	const uint64_t missing = cure->failure.facts.short_by;
	const bool is_enough = missing != GPUCACHE_UNKNOWN && change->bytes >= missing;
	GPC_TEXT(text, 2 * GPC_PLACE_SIZE);

	if (!is_worth(cure, change))
		return;
	gpc_text_add(&text, "%s%s%s", change->words, change->place ? ", in " : "",
		change->place ? change->place : "");
	gpc_document_row(doc, gpc_bytes(change->bytes),
		is_enough && change->reach != WHOLE ? gpc_blank() : gpc_truth(is_enough),
		gpc_name(bounds[change->reach]),
		gpc_name(!is_enough               ? "too little"
			 : change->reach == WHOLE ? "enough"
						  : bounds[change->reach]),
		gpc_sentence(text.buf));
}

/* The line of a stack with its callers; NULL: there is none. */
static const char *place_of(const struct gpc_cure *cure, uint64_t stack, char place[GPC_PLACE_SIZE])
{
	struct gpc_text text = gpc_text_init(place, GPC_PLACE_SIZE);

	if (stack == 0 || stack == GPUCACHE_UNKNOWN)
		return NULL;
	gpc_frames_where(cure->report->frames, (uint32_t)stack, GPC_SITE_CALLERS, &text);
	return place;
}

/* By how many percent the batch has to shrink: activations are as long as it is; 0: that would not help, or is unknown. */
static unsigned batch_less(const struct gpc_facts *facts)
{
	const uint64_t activations = gpc_bytes_add(or_none(facts->activations),
		facts->asked_purpose == GPC_PURPOSE_ACTIVATIONS ? or_none(facts->need) : 0);
	const uint64_t missing = or_none(facts->short_by);

	if (activations <= missing || facts->kept_bytes != GPUCACHE_UNKNOWN)
		return 0;
	return (unsigned)(((unsigned __int128)missing * 100 + activations - 1) / activations);
}

static void show_batch(const struct gpc_facts *facts, struct gpc_document *doc)
{
	const unsigned less = batch_less(facts);
	GPC_TEXT(text, 400);

	if (!less)
		return;
	gpc_text_add(&text,
		"a smaller batch: %u %% of its samples would get past this request, if activations "
		"are as long as it is; the rest of the step is not recorded",
		100 - less);
	if (facts->gpu)
		gpc_text_add(&text,
			".  The largest batch: gpucache-run --fit --on %s " GPC_SWEEP_BATCH,
			facts->gpu);
	gpc_document_row(doc, gpc_bytes(facts->short_by), gpc_blank(), gpc_name("this request"),
		gpc_name("this request"), gpc_sentence(text.buf));
}

/* Steps like the one that failed were over before: the line that asks has freed what it got, between rises of all memory. */
static bool saw_step(const struct gpc_cure *cure)
{
	return cure->n_steps >= 2 && or_none(cure->failure.facts.freed_before) &&
	       cure->failure.answer.cause != GPUCACHE_VERDICT_SPIKE &&
	       !(cure->failure.answer.also >> GPUCACHE_VERDICT_SPIKE & 1);
}

void gpc_cure_show_changes(const struct gpc_cure *cure, struct gpc_document *doc)
{
	static const struct gpc_column columns[] = {
		{ "saves_bytes", "saves", 12 },
		{ "enough" },
		{ "bound" },
		{ NULL, "", -12 },
		{ "change", "change" },
	};
	static const struct gpc_section section = { "changes", "CHANGES", GPC_COLUMNS(columns) };
	const struct gpc_facts *f = &cure->failure.facts;
	const uint64_t kept = or_none(f->kept_bytes);
	const uint64_t grown =
		cure->failure.answer.cause == GPUCACHE_VERDICT_GROWTH ? or_none(f->growth_held) : 0;
	/* Without a backward pass to come nothing is kept that could be computed twice. */
	const uint64_t activations =
		kept || f->is_generating == GPC_YES ? 0 : or_none(f->activations);
	const enum reach reach = saw_step(cure) ? WHOLE : REQUEST;
	/* Of results that no backward pass has used yet it would be the first. */
	const enum reach kept_reach =
		f->grows_summed == GPC_YES && !f->evaluation_place ? REQUEST : WHOLE;
	char growth_place[GPC_PLACE_SIZE];
	bool is_any = batch_less(f) > 0;
	GPC_TEXT(checkpoint, 2 * GPC_PLACE_SIZE);
	const struct change changes[] = {
		{ kept, kept_reach,
			"do not keep what earlier passes made (torch.no_grad, .item(), "
			".detach().cpu())",
			f->evaluation_place ? f->evaluation_place : f->loop_place },
		{ kept ? 0 : grown, f->is_replaced == GPC_YES ? MOST : WHOLE,
			"free what grows, a list or a buffer",
			f->loop_place ? f->loop_place
				      : place_of(cure, f->growth_site, growth_place) },
		{ or_none(f->loaded_bytes), reach, "drop the checkpoint that the model has copied",
			f->loaded_place },
		{ or_none(f->failed_bytes), REQUEST,
			"retry behind the `except` block, not inside it", f->failed_place },
		{ f->asked_purpose == GPC_PURPOSE_ACTIVATIONS ? or_none(f->gradients) : 0, reach,
			"zero_grad(set_to_none=True) before the forward pass: no gradients "
			"meanwhile",
			f->backward_place },
		{ activations, MOST, checkpoint.buf, NULL },
		{ activations / 2, MOST, "autocast to bfloat16: half of activations in float32",
			NULL },
		{ or_none(f->optimizer) / 4 * 3, MOST,
			"an 8-bit optimizer: three quarters of its state in float32", NULL },
		{ or_none(f->weights) / 2 + or_none(f->gradients) / 2, MOST,
			"the model in bfloat16: half of weights and gradients in float32", NULL },
		{ or_none(f->spare_contexts), reach, "one context per GPU", NULL },
	};

	gpc_text_add(&checkpoint,
		"torch.utils.checkpoint around %s%s: activations are computed twice",
		f->checkpoint_place ? f->checkpoint_place : "each block in ",
		f->checkpoint_place    ? ""
		: f->activations_place ? f->activations_place
				       : "the model");
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		is_any |= is_worth(cure, &changes[i]);
	gpc_document_open(doc, &section);
	if (is_any)
		gpc_document_say(doc,
			"of the program, and what each saves at this request by the recording; not "
			"tried");
	for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
		show(cure, doc, &changes[i]);
	show_batch(f, doc);
	gpc_document_close(doc);
}
