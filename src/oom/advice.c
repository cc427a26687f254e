/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table by verdict: a function that decides whether the advice applies, and a text.  If the advice is a setting, the
 * function checks by the measured numbers that the setting would have served the request, and that it is not set yet.
 */
#include "oom/advice.h"

#include <stdbool.h>
#include <string.h>

#include "alloc/size_class.h"
#include "base/bytes.h"
#include "model/torch.h"

/* The room for a call site within a sentence; a longer text is cut. */
#define SITE_SIZE 64

/* A longer GPUCACHE_CONF is not repeated before the new setting, so that the advice stays on one line. */
#define CONF_REPEATED 48u

struct advice_context {
	struct gpc_verdict_view v;
	const struct gpc_describer *describer;
	struct gpc_text *text;
};

void gpc_site_describe(
	const struct gpc_describer *describer, uint32_t stack, char *buf, size_t size)
{
	buf[0] = '\0';
	if (stack != 0 && describer && describer->describe)
		describer->describe(describer->self, stack, buf, size);
	if (buf[0])
		return;
	if (stack != 0)
		gpc_format(buf, size, "stack %u", stack);
	else
		gpc_format(buf, size, "no stack");
}

/* Appends a line to paste, which adds a setting to the present GPUCACHE_CONF. */
static void add_setting(const struct advice_context *c, const char *setting)
{
	const char *conf = c->v.facts->conf;

	if (!conf || !conf[0])
		gpc_text_add(c->text, "GPUCACHE_CONF=%s", setting);
	else if (strlen(conf) <= CONF_REPEATED && gpc_text_is_plain(conf))
		gpc_text_add(c->text, "GPUCACHE_CONF=%s,%s", conf, setting);
	else
		gpc_text_add(c->text, "add ,%s to GPUCACHE_CONF", setting);
}

static bool is_set(const struct advice_context *c, uint32_t option)
{
	return c->v.facts->options_set & option;
}

/* Each function returns true if its advice applies; then it has written what the table does not have of the line. */

static bool advise_shape(struct advice_context *c)
{
	char site[SITE_SIZE];

	gpc_text_add(c->text, "no setting can help: check how the size is computed");
	if (c->v.oom->stack) {
		gpc_site_describe(c->describer, c->v.oom->stack, site, sizeof site);
		gpc_text_add(c->text, ", at %s", site);
	}
	return true;
}

/* Advises a limit that would have been enough, unless it exceeds the device. */
static bool advise_limit(struct advice_context *c)
{
	const struct gpc_verdict_view *v = &c->v;
	bool is_torch = v->oom->kind == GPUCACHE_KIND_TENSOR;
	uint64_t needed = gpc_bytes_add(is_torch ? v->oom->torch.reserved : v->charged,
		is_torch ? gpc_torch_segment_size(v->need) : v->step);
	uint64_t total = v->oom->balance.device_total;
	uint64_t percent;

	if (!gpc_is_known(v->driver) || v->driver < v->need || !gpc_is_known(needed))
		return false;
	if (!is_set(c, GPC_SET_FRACTION) && !is_torch) {
		/* A segment more: in the next run other threads may request memory earlier, or in another order. */
		needed = gpc_bytes_add(gpc_round_up(needed, GPC_MIB), GPC_MEDIUM_SEGMENT);
		gpc_text_add(c->text, "in GPUCACHE_CONF raise limit to limit:%lluMiB",
			(unsigned long long)needed / GPC_MIB);
		return true;
	}
	if (!gpc_is_known(total) || total < 100 || needed > total)
		return false;
	/* Rounded up.  The total is divided first, because needed * 100 may overflow. */
	percent = (needed + total / 100 - 1) / (total / 100);
	if (percent > 100)
		return false;
	gpc_text_add(c->text, "%s%llu.%02llu%s",
		is_torch ? "torch.cuda.set_per_process_memory_fraction("
			 : "in GPUCACHE_CONF raise the fraction to per_process_memory_fraction:",
		(unsigned long long)(percent / 100), (unsigned long long)(percent % 100),
		is_torch ? ") would have been enough" : "");
	return true;
}

static bool advise_expandable(struct advice_context *c)
{
	return gpc_torch_is_fragmented(c->v.oom);
}

/* The numbers of one moment do not show which option would have helped; a replay does. */
static bool advise_replay(struct advice_context *c)
{
	if (!c->v.facts->caching || gpc_torch_is_fragmented(c->v.oom))
		return false;
	gpc_text_add(c->text,
		"gpumem-report replays this run, and says which option would have made room");
	return true;
}

static bool advise_synchronise(struct advice_context *c)
{
	gpc_text_add(c->text, "%s",
		c->v.facts->capturing ? "make this allocation before the stream capture begins"
				      : "call cudaDeviceSynchronize() before this allocation");
	return true;
}

/* Advises only if the request would have fitted without rounding. */
static bool advise_roundup(struct advice_context *c)
{
	const struct gpc_verdict_view *v = &c->v;

	return is_set(c, GPC_SET_ROUNDUP) && v->shortage <= v->need - v->oom->requested;
}

static bool advise_stop_neighbour(struct advice_context *c)
{
	const struct gpucache_oom *oom = c->v.oom;
	const struct gpucache_neighbour *first = &oom->neighbours[0];

	if (oom->n_neighbours == 0 || !gpc_is_known(first->bytes)) {
		gpc_text_add(c->text, "nvidia-smi on the host names the other processes");
		return true;
	}
	gpc_text_add(c->text, "pid %u%s%.*s", first->pid, first->name[0] ? " " : "",
		(int)sizeof first->name, first->name);
	if (first->own_age_s) {
		gpc_text_add(c->text, ", your own since %llu min",
			(unsigned long long)first->own_age_s / 60);
		gpc_text_add_amounts(c->text, ", holds @", first->bytes);
		gpc_text_add(c->text, ": an earlier job? `kill %u` ends it", first->pid);
		return true;
	}
	gpc_text_add_amounts(
		c->text, " holds @: wait for it, stop it, or use another GPU", first->bytes);
	return true;
}

static bool advise_wait(struct advice_context *c)
{
	if (is_set(c, GPC_SET_OOM_WAIT))
		return false;
	add_setting(c, "oom_wait_ms:30000");
	return true;
}

static bool advise_lazy_modules(struct advice_context *c)
{
	return c->v.facts->eager_modules;
}

static bool advise_growing_site(struct advice_context *c)
{
	const struct gpucache_oom *oom = c->v.oom;
	char site[SITE_SIZE];

	if (oom->growth_bytes == 0 || !gpc_is_known(oom->growth_bytes) || oom->growth_stack == 0)
		return false;
	if (oom->verdict != GPUCACHE_VERDICT_GROWTH &&
		!(oom->also & (1u << GPUCACHE_VERDICT_GROWTH)))
		return false;
	gpc_site_describe(c->describer, oom->growth_stack, site, sizeof site);
	gpc_text_add(c->text,
		c->v.facts->is_renewed ? "bound the size of what %s makes:"
				       : "does %s keep what it no longer needs?",
		site);
	gpc_text_add_amounts(c->text, " it grew by @", oom->growth_bytes);
	return true;
}

static bool advise_smaller_step(struct advice_context *c)
{
	gpc_text_add_amounts(c->text, "make this step smaller by @", c->v.shortage);
	return true;
}

/* part / whole in percent, rounded up; part <= whole, whole > 0. */
static unsigned percent_up(uint64_t part, uint64_t whole)
{
	return (unsigned)(((unsigned __int128)part * 100 + whole - 1) / whole);
}

/* The largest holder that the program can free. */
static const struct gpucache_holder *find_top_holder(const struct advice_context *c)
{
	const struct gpc_describer *describer = c->describer;
	const struct gpucache_oom *oom = c->v.oom;

	for (uint32_t i = 0; i < oom->n_holders && oom->holders[i].bytes; i++)
		if (!describer || !describer->can_free ||
			describer->can_free(describer->self, oom->holders[i].stack))
			return &oom->holders[i];
	return NULL;
}

/* The bytes of all holders described as `site`, as in the rows of HOLD: one line of code has many stacks. */
static uint64_t held_by(const struct advice_context *c, const char *site)
{
	const struct gpucache_oom *oom = c->v.oom;
	char other[SITE_SIZE];
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < oom->n_holders; i++) {
		gpc_site_describe(c->describer, oom->holders[i].stack, other, sizeof other);
		if (strcmp(other, site) == 0)
			bytes = gpc_bytes_add(bytes, oom->holders[i].bytes);
	}
	return bytes;
}

/* Names the bytes to free, and the largest holder. */
static bool advise_top_holder(struct advice_context *c)
{
	const struct gpucache_holder *top = find_top_holder(c);
	char site[SITE_SIZE];
	uint64_t bytes;

	if (c->v.shortage == 0)
		return false;
	gpc_text_add_amounts(c->text, "free at least @", c->v.shortage);
	if (!top)
		return true;
	gpc_site_describe(c->describer, top->stack, site, sizeof site);
	bytes = held_by(c, site);
	gpc_text_add(c->text, "; ");
	if (c->v.shortage <= bytes)
		gpc_text_add(c->text, "%u %% of the ", percent_up(c->v.shortage, bytes));
	gpc_text_add_amounts(
		c->text, c->v.shortage <= bytes ? "@ held by " : "@ is held by ", bytes);
	gpc_text_add(c->text, "%s%s", site, c->v.shortage <= bytes ? " would do" : "");
	return true;
}

static const struct {
	enum gpucache_verdict verdict;
	bool (*write)(struct advice_context *context); /* NULL: the advice always applies */
	const char *text; /* the whole line, or what follows the text of `write` */
} advice[] = {
	{ GPUCACHE_VERDICT_IMPOSSIBLE, advise_shape, "" },
	{ GPUCACHE_VERDICT_LIMIT, advise_limit, "" },
	{ GPUCACHE_VERDICT_LIMIT, advise_top_holder, "" },
	{ GPUCACHE_VERDICT_FRAGMENTED, advise_expandable,
		"PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True  joins the holes" },
	{ GPUCACHE_VERDICT_FRAGMENTED, advise_replay, "" },
	{ GPUCACHE_VERDICT_PENDING, advise_synchronise, "" },
	{ GPUCACHE_VERDICT_CONTEXTS, NULL,
		"one context per GPU: use the primary one (cudaSetDevice), and one process" },
	{ GPUCACHE_VERDICT_ROUNDING, advise_roundup,
		"take roundup_power2_divisions out of GPUCACHE_CONF" },
	{ GPUCACHE_VERDICT_ROUNDING, advise_replay, "" },
	{ GPUCACHE_VERDICT_NEIGHBOUR, advise_stop_neighbour, "" },
	{ GPUCACHE_VERDICT_NEIGHBOUR, advise_wait, "  waits for them to end" },
	{ GPUCACHE_VERDICT_MANAGED, NULL,
		"free managed memory, or move it away (cudaMemPrefetchAsync to the host)" },
	{ GPUCACHE_VERDICT_UNTRACKED, advise_lazy_modules,
		"CUDA_MODULE_LOADING=LAZY  loads only the kernels that are used" },
	{ GPUCACHE_VERDICT_UNTRACKED, NULL,
		"look at workspaces of libraries (cuBLAS, NCCL), printf and malloc heaps, "
		"or stack sizes of kernels" },
	{ GPUCACHE_VERDICT_GROWTH, advise_growing_site, "" },
	{ GPUCACHE_VERDICT_GROWTH, advise_top_holder, "" },
	{ GPUCACHE_VERDICT_SPIKE, advise_smaller_step, " (batch or sequence length)" },
	{ GPUCACHE_VERDICT_SPIKE, advise_growing_site, "" },
	{ GPUCACHE_VERDICT_EXHAUSTED, advise_top_holder, "" },
	{ GPUCACHE_VERDICT_EXHAUSTED, advise_growing_site, "" },
	{ GPUCACHE_VERDICT_DRIVER, NULL,
		"look at `ulimit -v` and nvidia-smi: address space or another process" },
	{ GPUCACHE_VERDICT_WRONG_POOL, advise_replay, "" },
	{ GPUCACHE_VERDICT_PINNED, NULL,
		"look at `ulimit -l` and at the host's free memory; pin less" },
};

unsigned gpc_advice_write(const struct gpucache_oom *oom, const struct gpc_verdict_facts *facts,
	const struct gpc_describer *describer, struct gpc_text *text)
{
	struct advice_context context = { .describer = describer, .text = text };
	unsigned lines = 0;

	gpc_verdict_view(oom, facts, &context.v);
	for (size_t i = 0; i < sizeof advice / sizeof advice[0] && lines < GPC_MAX_ADVICE; i++) {
		if (advice[i].verdict != oom->verdict ||
			(advice[i].write && !advice[i].write(&context)))
			continue;
		gpc_text_add(text, "%s\n", advice[i].text);
		lines++;
	}
	return lines;
}
