/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tags of the process, for gpucache_tag_push and NVTX.  These functions need no entry (enter.h): a range may begin
 * before the first CUDA call, and none of them calls the driver.
 */
#include "runtime/process/tags.h"

#include <string.h>

#include "base/thread.h"
#include "record/store.h"
#include "runtime/process/state.h"
#include "stack/tags.h"

static struct gpc_tags tags;

/* A forked child has a copy of the table, but must not write into the recording of its parent. */
static bool append_to_record(
	void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	return gpc_process_is_ours() && gpc_record_append(self, region, record, size);
}

void gpc_runtime_tags_start(void)
{
	static const struct gpc_stack_sink sink = {
		.self = &gpc_runtime.record,
		.append = append_to_record,
	};

	gpc_tags_attach(&tags, &sink);
	gpc_record_tags_dropped(&gpc_runtime.record, atomic_load(&tags.n_dropped));
}

uint32_t gpc_runtime_tags_end(void)
{
	return gpc_tags_end(&tags);
}

uint32_t gpc_runtime_tag_push(uint32_t domain, const char *name)
{
	uint32_t level = gpc_tags_push(&tags, &gpc_thread.place, domain, name);

	if (gpc_thread.place.n_untagged && gpc_process_is_ours())
		gpc_record_tags_dropped(&gpc_runtime.record, atomic_load(&tags.n_dropped));
	return level;
}

bool gpc_runtime_tag_pop(uint32_t domain, uint32_t *ret_level)
{
	return gpc_tags_pop(&tags, &gpc_thread.place, domain, ret_level);
}

uint32_t gpc_runtime_tag_domain(const char *name)
{
	return gpc_tags_domain(&tags, name);
}

uint32_t gpc_runtime_tag_string(const char *text)
{
	return gpc_tags_string(&tags, text);
}

const char *gpc_runtime_tag_name(uint32_t id)
{
	return gpc_tags_name(&tags, id);
}

bool gpc_runtime_is_tagged(uint32_t tag, const char *name)
{
	for (; tag; tag = gpc_tags_parent(&tags, tag))
		if (strcmp(gpc_tags_name(&tags, tag), name) == 0)
			return true;
	return false;
}

bool gpc_runtime_wants_tags(void)
{
	return !gpc_config_is_off();
}
