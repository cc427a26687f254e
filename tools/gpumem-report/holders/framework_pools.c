/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table says which variables shrink, enlarge or disable each framework's pool.  The pool itself is recognized among
 * the holders of the peak, or of a failure: few blocks of one framework, with a large part of the GPU.
 */
#include "tools/gpumem-report/holders/framework_pools.h"

#include <string.h>

#include "tools/gpumem-report/holders/by_library.h"

/* A framework has a pool if it holds at least 1/POOL_PART of the GPU in at most POOL_BLOCKS: pools grow by doubling. */
#define POOL_PART   4
#define POOL_BLOCKS 32

/* What is taken at once is a block, or one of each of the framework's devices. */
#define AT_ONCE_BLOCKS 4

static const struct gpc_framework_row frameworks[] = {
	{ "XLA", "XLA (JAX)", "RESOURCE_EXHAUSTED", "XLA_PYTHON_CLIENT_PREALLOCATE=false",
		"XLA_PYTHON_CLIENT_MEM_FRACTION=.95", "XLA_PYTHON_CLIENT_ALLOCATOR=platform",
		"XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", "arrays" },
	{ "TensorFlow", "TensorFlow", "ResourceExhaustedError", "TF_FORCE_GPU_ALLOW_GROWTH=true",
		"per_process_gpu_memory_fraction, or a larger memory_limit",
		"TF_GPU_ALLOCATOR=cuda_malloc_async", "TF_GPU_ALLOCATOR=cuda_malloc_async",
		"tensors" },
};

static const struct gpc_framework_row *framework_of(const char *library)
{
	for (size_t i = 0; i < sizeof frameworks / sizeof frameworks[0]; i++)
		if (strcmp(library, frameworks[i].name) == 0)
			return &frameworks[i];
	return NULL;
}

void gpc_framework_add_less(const struct gpc_framework_row *framework, struct gpc_text *text)
{
	gpc_text_add(text, "%s: it then takes what it needs. %s: a run so records each of its %s.",
		framework->grows, framework->no_pool, framework->pieces);
}

/* True if the run had "NAME=VALUE" in its environment. */
static bool had(const struct gpc_recording *recording, const char *setting)
{
	size_t wanted = strlen(setting);
	const char *line;
	size_t size;

	for (size_t i = 0; gpc_recording_read_text(recording, i, &line, &size); i++)
		if (size == 4 + wanted && memcmp(line, "env ", 4) == 0 &&
			memcmp(line + 4, setting, wanted) == 0)
			return true;
	return false;
}

static bool has_own_pool(
	const struct gpc_recording *recording, const struct gpc_framework_row *framework)
{
	return !had(recording, framework->no_pool) && !had(recording, framework->drivers_pool);
}

struct gpc_framework_pool gpc_framework_find_pool(const struct gpc_recording *recording,
	const struct gpucache_holder *holders, uint32_t n, uint64_t device_total)
{
	struct gpc_framework_pool pool = { 0 };

	for (uint32_t i = 0; i < n; i++) {
		const struct gpc_framework_row *framework;
		GPC_TEXT(library, 64);

		gpc_library_name(recording, holders[i].stack, &library);
		framework = framework_of(library.buf);
		if (!framework || (pool.framework && framework != pool.framework))
			continue;
		pool.framework = framework;
		pool.bytes = gpc_bytes_add(pool.bytes, holders[i].bytes);
		pool.n_blocks += holders[i].n_blocks;
	}
	if (pool.framework &&
		(pool.bytes < device_total / POOL_PART || pool.n_blocks > POOL_BLOCKS ||
			!has_own_pool(recording, pool.framework)))
		pool.framework = NULL;
	return pool;
}

bool gpc_framework_took_at_once(
	const struct gpc_recording *recording, const struct gpc_framework_pool *pool)
{
	return pool->framework && pool->n_blocks <= AT_ONCE_BLOCKS &&
	       !had(recording, pool->framework->grows);
}

static struct gpc_framework_pool pool_at_peak(
	const struct gpc_report *report, const struct gpucache_device *device)
{
	struct gpucache_peak peak;

	if (!gpc_recording_find_peak(report->recording, device->ordinal, &peak))
		peak.n_holders = 0;
	return gpc_framework_find_pool(
		report->recording, peak.holders, peak.n_holders, device->total_bytes);
}

bool gpc_framework_add_pool(const struct gpc_report *report, const struct gpucache_device *device,
	struct gpc_text *text)
{
	struct gpc_framework_pool pool = pool_at_peak(report, device);
	uint64_t hundredth = device->total_bytes / 100;

	if (!pool.framework)
		return false;
	gpc_text_add(text, "%s took %s", pool.framework->words, gpc_show_bytes(pool.bytes));
	gpc_text_add(text,
		", %u %% of the GPU at the peak, and hands it out itself: what of it is in use "
		"cannot "
		"be told from outside. Where it said %s, that pool was full, not the GPU: %s gives "
		"it more.",
		hundredth ? (unsigned)((pool.bytes + hundredth / 2) / hundredth) : 0,
		pool.framework->full, pool.framework->more);
	if (!had(report->recording, pool.framework->grows))
		gpc_text_add(text, " %s lets it take only what it needs.", pool.framework->grows);
	gpc_text_add(text, " With %s a run records each of its %s.", pool.framework->no_pool,
		pool.framework->pieces);
	return true;
}

void gpc_framework_show(const struct gpc_report *report, const struct gpucache_device *device)
{
	static const struct gpc_section section = { "framework_pool", "POOL", .flags = GPC_OBJECT };
	struct gpc_framework_pool pool = pool_at_peak(report, device);
	struct gpc_document *doc = report->doc;
	GPC_TEXT(text, 900);

	if (!gpc_framework_add_pool(report, device, &text)) {
		gpc_document_member(doc, "framework_pool", gpc_blank());
		return;
	}
	gpc_document_open(doc, &section);
	gpc_document_say(doc, "%s", text.buf);
	gpc_document_member(doc, "framework", gpc_name(pool.framework->name));
	gpc_document_member(doc, "bytes", gpc_bytes(pool.bytes));
	gpc_document_member(doc, "blocks", gpc_count(pool.n_blocks));
	gpc_document_close(doc);
}
