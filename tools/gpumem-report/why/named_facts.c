/* SPDX-License-Identifier: Apache-2.0 */
/* The evidence is the recording; contexts, pools and pinned memory are found in its blocks and holders. */
#include "tools/gpumem-report/why/named_facts.h"

#include <stdlib.h>
#include <string.h>

#include "format/memory.h"
#include "oom/holder_rows.h"
#include "sim/gpu/model.h"
#include "tools/gpumem-report/holders/framework_pools.h"
#include "tools/gpumem-report/holders/holder_rows.h"
#include "why/numbers.h"
#include "why/purposes.h"
#include "why/retries.h"

/* Drivers and ECC make less difference to a model's memory. */
#define MODEL_PART 64

static const struct gpc_stack_frames *find_frames(void *self, uint32_t stack)
{
	return gpc_frames_find(((const struct gpc_report *)self)->frames, stack);
}

static bool read_site(void *self, uint64_t i, struct gpucache_site *ret_site)
{
	return gpc_recording_read_site(((const struct gpc_report *)self)->recording, i, ret_site);
}

static bool find_oom(void *self, uint64_t number, struct gpucache_oom *ret_oom)
{
	return gpc_recording_find_oom(
		((const struct gpc_report *)self)->recording, number, ret_oom);
}

static struct gpc_evidence evidence_of(const struct gpc_report *report)
{
	return (struct gpc_evidence){
		.self = (void *)(uintptr_t)report,
		.frames = find_frames,
		.read_site = read_site,
		.n_sites = report->recording->regions[GPUCACHE_REGION_SITES].count,
		.find_oom = find_oom,
	};
}

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

void gpc_report_held(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	const struct gpc_evidence evidence = evidence_of(report);

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST)
		add_pinned(report, oom, ret_text);
	else
		gpc_say_held(&evidence, oom, ret_text);
}

static void describe(void *self, uint32_t stack, bool has_via, char *buf, size_t size)
{
	const struct gpc_stack_frames *frames = find_frames(self, stack);
	struct gpc_text text = gpc_text_init(buf, size);

	if (frames && frames->site >= 0)
		gpc_frames_fit(frames, has_via, &text);
}

/* As on stderr: holders that are described alike are one. */
static void set_top(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_facts *facts)
{
	const struct gpc_describer describer = { .self = (void *)(uintptr_t)report,
		.describe = describe };
	struct gpc_holder_row rows[GPUCACHE_MAX_OOM_HOLDERS];

	if (gpc_holder_rows_fill(
		    rows, oom->holders, oom->n_holders, &describer, GPC_HOLDER_SITE_SIZE)) {
		facts->top_site = rows[0].stack;
		facts->top_held = rows[0].bytes;
	}
}

/* Finds a framework that took a pool of its own at once. */
static void set_framework(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts)
{
	struct gpc_text less = gpc_text_init(texts->framework_less, sizeof texts->framework_less);
	const struct gpc_framework_pool pool = gpc_framework_find_pool(
		report->recording, oom->holders, oom->n_holders, oom->balance.device_total);

	if (!gpc_framework_took_at_once(report->recording, &pool))
		return;
	gpc_framework_add_less(pool.framework, &less);
	facts->framework = pool.framework->words;
	facts->framework_bytes = pool.bytes;
	facts->framework_less = less.buf;
}

/* The primary context has the stack of the program's first call. */
static void set_contexts(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_facts *facts)
{
	struct gpc_row *rows;
	size_t n = live_of_kind(report, oom, is_context, &rows);

	if (n && rows[0].n_blocks > 1 && rows[0].id)
		facts->contexts_site = rows[0].id;
	free(rows);
}

/* The model of the table, if it is that or simulates it with its memory; else a size. */
static void set_gpu(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts)
{
	struct gpc_text text = gpc_text_init(texts->gpu, sizeof texts->gpu);
	const struct gpc_sim_model *model;
	struct gpucache_device device;

	if (!gpc_recording_find_device(report->recording, oom->device, &device) ||
		device.total_bytes < GPC_MIB)
		return;
	for (size_t i = 1; (model = gpc_sim_model_at(i)) && !text.len; i++)
		if (strncmp(device.name, model->name, strlen(model->name)) == 0 &&
			strchr(",", device.name[strlen(model->name)]) &&
			gpc_distance(device.total_bytes, model->memory) <=
				model->memory / MODEL_PART)
			gpc_text_add(&text, "%s", model->key);
	if (!text.len && device.total_bytes % GPC_GIB == 0)
		gpc_text_add(&text, "%lluGiB", (unsigned long long)(device.total_bytes / GPC_GIB));
	else if (!text.len)
		gpc_text_add(&text, "%lluMiB", (unsigned long long)(device.total_bytes / GPC_MIB));
	facts->gpu = text.buf;
}

void gpc_named_facts(const struct gpc_report *report, const struct gpucache_oom *oom,
	struct gpc_facts *facts, struct gpc_named_texts *texts)
{
	const struct gpc_evidence evidence = evidence_of(report);

	if (gpucache_kind_place(oom->kind) == GPUCACHE_ON_HOST) {
		facts->is_loader = truth(gpc_purpose_of(gpc_frames_find(report->frames,
						 oom->stack)) == GPC_PURPOSE_INPUTS);
		return;
	}
	set_gpu(report, oom, facts, texts);
	set_top(report, oom, facts);
	set_contexts(report, oom, facts);
	set_framework(report, oom, facts, texts);
	gpc_torch_facts(&evidence, oom, facts, &texts->torch);
	gpc_retries_find(&evidence, oom, facts);
}
