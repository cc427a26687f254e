/* SPDX-License-Identifier: Apache-2.0 */
/* PyTorch reports its sums to the library, which stores them in the region TORCH and in the record of each failure. */
#include "tools/gpumem-report/holders/torch_pool.h"

#include "model/sheet.h"
#include "model/torch.h"

struct gpc_torch gpc_torch_now(const struct gpc_report *report, int32_t ordinal)
{
	struct gpucache_torch sums;

	if (!gpc_recording_find_torch(report->recording, ordinal, &sums))
		return (struct gpc_torch){ 0 };
	return (struct gpc_torch){
		.reserved = sums.reserved_bytes,
		.in_tensors = sums.allocated_bytes,
		.unused = gpc_bytes_less(sums.reserved_bytes, sums.allocated_bytes),
		.framework = sums.framework,
	};
}

bool gpc_torch_is_there(const struct gpc_report *report, int32_t ordinal)
{
	const struct gpc_recording *rec = report->recording;
	bool is_there = gpc_torch_now(report, ordinal).reserved != 0;
	struct gpucache_oom oom;

	for (uint64_t i = 0; !is_there && i < rec->regions[GPUCACHE_REGION_OOMS].count; i++)
		is_there = gpc_recording_read_oom(rec, i, &oom) && oom.device == ordinal &&
			   oom.torch.reserved != 0;
	return is_there;
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
		.framework = oom->framework,
	};
}

void gpc_torch_show_sheet(const struct gpc_report *report, int32_t ordinal,
	const struct gpucache_balance *balance, const uint64_t kind_bytes[GPUCACHE_MAX_KINDS],
	const struct gpucache_oom *oom)
{
	struct gpc_torch torch = oom ? gpc_torch_at(oom) : gpc_torch_now(report, ordinal);
	const struct gpc_sheet sheet = { balance, kind_bytes, torch.reserved, torch.unused,
		oom ? oom->requested : 0, torch.framework };
	uint64_t used = gpc_bytes_less(balance->device_total, balance->device_free);
	uint64_t implicit = gpc_implicit_bytes(kind_bytes);
	/* PyTorch's cache has spilled memory as well, which is not on the device. */
	uint64_t cache = gpc_bytes_less(torch.reserved, kind_bytes[GPUCACHE_KIND_SPILLED]);
	bool is_xla = torch.framework == GPUCACHE_FRAMEWORK_XLA;

	gpc_sheet_show(report->doc, &sheet);
	if (!torch.reserved || balance->device_free == GPUCACHE_UNKNOWN)
		return;
	gpc_document_open_text(report->doc, "USED");
	gpc_document_say(report->doc,
		"%s, as nvidia-smi counts: %s contexts and libraries + %s %s (%s of "
		"it in no %s) + %s others.",
		gpc_show_bytes(used), gpc_show_bytes(implicit), gpc_show_bytes(cache),
		is_xla ? "XLA's pool" : "PyTorch's cache",
		gpc_show_bytes(gpc_smaller(torch.unused, cache)), is_xla ? "array" : "tensor",
		gpc_show_bytes(gpc_bytes_less(gpc_bytes_less(used, implicit), cache)));
	gpc_document_close(report->doc);
}

void gpc_torch_tell_at(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_torch torch = gpc_torch_at(oom);
	struct gpc_document *doc = report->doc;

	if (!torch.reserved) {
		gpc_document_member(doc, "torch", gpc_blank());
		return;
	}
	gpc_document_open_object(doc, "torch");
	gpc_document_member(doc, "requested_bytes", gpc_bytes(gpc_unless_zero(torch.requested)));
	gpc_document_member(doc, "allocated_bytes", gpc_bytes(torch.in_tensors));
	gpc_document_member(doc, "reserved_bytes", gpc_bytes(torch.reserved));
	gpc_document_close(doc);
}

void gpc_torch_tell(const struct gpc_report *report, int32_t ordinal)
{
	struct gpc_document *doc = report->doc;
	struct gpucache_torch sums;

	if (!gpc_recording_find_torch(report->recording, ordinal, &sums)) {
		gpc_document_member(doc, "torch", gpc_blank());
		return;
	}
	gpc_document_open_object(doc, "torch");
	gpc_document_member(doc, "allocated_bytes", gpc_bytes(sums.allocated_bytes));
	gpc_document_member(doc, "reserved_bytes", gpc_bytes(sums.reserved_bytes));
	gpc_document_member(doc, "peak_allocated_bytes", gpc_bytes(sums.peak_allocated_bytes));
	gpc_document_member(doc, "peak_reserved_bytes", gpc_bytes(sums.peak_reserved_bytes));
	gpc_document_member(doc, "allocations", gpc_count(sums.n_malloc));
	gpc_document_member(doc, "frees", gpc_count(sums.n_free));
	gpc_document_member(doc, "failed", gpc_count(sums.n_failed));
	gpc_document_close(doc);
}
