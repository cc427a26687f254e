/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch reports its sums to the library, which stores them in the region TORCH and in the record of each failure. */
#include "tools/gpumem-report/holders/torch_pool.h"

#include "model/torch.h"
#include "tools/gpumem-report/output/json.h"

struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal)
{
	struct gpucache_torch sums;

	if (!gpc_recording_find_torch(report->recording, ordinal, &sums))
		return (struct gpc_torch){ 0 };
	return (struct gpc_torch){
		.reserved = sums.reserved_bytes,
		.in_tensors = sums.allocated_bytes,
		.unused = gpc_bytes_less(sums.reserved_bytes, sums.allocated_bytes),
	};
}

struct gpc_torch gpc_torch_at(const struct gpucache_oom *oom)
{
	const uint64_t unused = gpc_torch_unused(&oom->torch);

	if (!oom->torch.reserved)
		return (struct gpc_torch){ 0 };
	return (struct gpc_torch){
		.reserved = oom->torch.reserved,
		.in_tensors = oom->torch.reserved - unused,
		.unused = unused,
		.requested = oom->torch.requested,
	};
}

void gpc_torch_print_used(const struct gpc_report *report, const struct gpc_torch *torch,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS])
{
	uint64_t used = gpc_bytes_less(balance->device_total, balance->device_free);
	uint64_t implicit =
		gpc_bytes_add(kind_bytes[GPUCACHE_KIND_CONTEXT], kind_bytes[GPUCACHE_KIND_MODULE]);
	uint64_t rest = gpc_bytes_less(gpc_bytes_less(used, implicit), torch->reserved);
	const uint64_t parts[] = { implicit, torch->reserved, rest };
	struct gpc_rounded rounded[3];
	GPC_TEXT(text, 300);

	if (!torch->reserved || balance->device_free == GPUCACHE_UNKNOWN)
		return;
	gpc_rounded_parts(gpc_rounded_of(used), parts, 3, rounded);
	gpc_text_add(&text, "%s, as nvidia-smi counts: ", gpc_show_bytes(used));
	gpc_text_add(&text, "%s contexts and libraries", gpc_show_rounded(rounded[0]));
	gpc_text_add(&text, " + %s PyTorch's cache", gpc_show_rounded(rounded[1]));
	gpc_text_add(&text, " (%s of it in no tensor)", gpc_show_bytes(torch->unused));
	gpc_text_add(&text, " + %s others.", gpc_show_rounded(rounded[2]));
	fputc('\n', report->paper.out);
	gpc_paper_wrap(&report->paper, "USED", text.buf);
}

struct json_object *gpc_torch_json_at(const struct gpucache_oom *oom)
{
	struct gpc_torch torch = gpc_torch_at(oom);
	struct json_object *object;

	if (!torch.reserved)
		return NULL;
	object = json_object_new_object();
	gpc_json_bytes(
		object, "requested_bytes", torch.requested ? torch.requested : GPUCACHE_UNKNOWN);
	gpc_json_bytes(object, "allocated_bytes", torch.in_tensors);
	gpc_json_bytes(object, "reserved_bytes", torch.reserved);
	return object;
}

struct json_object *gpc_torch_json(const struct gpc_report *report, int32_t ordinal)
{
	struct json_object *object;
	struct gpucache_torch sums;

	if (!gpc_recording_find_torch(report->recording, ordinal, &sums))
		return NULL;
	object = json_object_new_object();
	gpc_json_bytes(object, "allocated_bytes", sums.allocated_bytes);
	gpc_json_bytes(object, "reserved_bytes", sums.reserved_bytes);
	gpc_json_bytes(object, "peak_allocated_bytes", sums.peak_allocated_bytes);
	gpc_json_bytes(object, "peak_reserved_bytes", sums.peak_reserved_bytes);
	gpc_json_bytes(object, "allocations", sums.n_malloc);
	gpc_json_bytes(object, "frees", sums.n_free);
	gpc_json_bytes(object, "failed", sums.n_failed);
	return object;
}
