/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both read the holders of the failure: `loaded` those allocated by torch.load next to other weights; `failed` the
 * largest one, if an earlier failure lists it with nearly as many bytes.
 */
#include "tools/gpumem-report/twice.h"

#include <string.h>

#include "base/bytes.h"
#include "tools/gpumem-report/categories.h"
#include "tools/gpumem-report/kept.h"
#include "tools/gpumem-report/remedies.h"

static bool is_loaded(const struct gpc_stack_frames *stack)
{
	for (size_t i = 0; stack && i < stack->n; i++)
		if (stack->frames[i].is_python && stack->frames[i].file &&
			strstr(stack->frames[i].file, "/torch/serialization.py"))
			return true;
	return false;
}

static uint64_t sum_weights(const struct gpc_report *report, const struct gpucache_oom *oom)
{
	struct gpc_category_row rows[GPC_CATEGORY_COUNT];
	struct gpc_holdings holdings;
	uint64_t bytes = 0;

	gpc_holdings_from_oom(&holdings, report, oom);
	(void)gpc_categories_sum(&holdings, report, rows);
	for (unsigned i = 0; i < GPC_CATEGORY_COUNT; i++)
		if (rows[i].category == GPC_CATEGORY_WEIGHTS)
			bytes = rows[i].bytes;
	gpc_holdings_fini(&holdings);
	return bytes;
}

bool gpc_twice_loaded(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	const struct gpucache_holder *biggest = NULL;
	uint64_t loaded = 0;

	for (uint32_t i = 0; i < oom->n_holders; i++) {
		const struct gpucache_holder *holder = &oom->holders[i];

		if (!is_loaded(gpc_frames_find(report->frames, holder->stack)))
			continue;
		loaded = gpc_bytes_add(loaded, holder->bytes);
		if (!biggest || holder->bytes > biggest->bytes)
			biggest = holder;
	}
	if (!biggest || loaded < oom->short_by ||
		gpc_bytes_less(sum_weights(report, oom), loaded) < loaded / 2)
		return false;
	gpc_text_add(ret_text, "torch.load(..., map_location=\"cpu\") in ");
	gpc_remedies_add_site(report, biggest->stack, ret_text);
	gpc_text_add(ret_text,
		": %s of the checkpoint are on the GPU, in addition to the weights loaded from "
		"it; or del it.",
		gpc_show_bytes(loaded));
	return true;
}

static const struct gpucache_holder *find_biggest(
	const struct gpc_report *report, const struct gpucache_oom *oom)
{
	const struct gpucache_holder *biggest = NULL;

	for (uint32_t i = 0; i < oom->n_holders; i++)
		if (gpc_category_of(report, oom->holders[i].stack) == GPC_CATEGORY_ACTIVATIONS &&
			(!biggest || oom->holders[i].bytes > biggest->bytes))
			biggest = &oom->holders[i];
	return biggest;
}

/*
 * Finds an earlier failure at which this site already held 3/4 of what it holds now.  Skips failures of a tensor of the
 * same size, because PyTorch tries the driver twice per tensor.
 */
static bool find_earlier(const struct gpc_report *report, const struct gpucache_oom *oom,
	const struct gpucache_holder *holder, uint64_t *ret_number)
{
	const struct gpucache_holder *then;
	struct gpucache_oom earlier;

	for (uint64_t number = oom->number; number-- > 1;) {
		if (!gpc_recording_find_oom(report->recording, number, &earlier) ||
			earlier.device != oom->device || !earlier.torch.requested ||
			earlier.torch.requested == oom->torch.requested)
			continue;
		then = gpc_holdings_of_stack(&earlier, holder->stack);
		if (then && then->bytes >= holder->bytes / 4 * 3) {
			*ret_number = number;
			return true;
		}
	}
	return false;
}

bool gpc_twice_failed(
	const struct gpc_report *report, const struct gpucache_oom *oom, struct gpc_text *ret_text)
{
	const struct gpucache_holder *holder = find_biggest(report, oom);
	uint64_t first_ns;
	uint64_t number;

	if (!holder || !oom->torch.requested || holder->bytes < oom->short_by ||
		!gpc_kept_most(report, oom, holder, &first_ns) ||
		!find_earlier(report, oom, holder, &number))
		return false;
	gpc_text_add(ret_text,
		"retry after the `except` block, not inside it: the exception keeps its frames "
		"alive, "
		"so failure %llu still holds what it had allocated, %s of ",
		(unsigned long long)number, gpc_show_bytes(holder->bytes));
	gpc_remedies_add_site(report, holder->stack, ret_text);
	gpc_text_add(ret_text, ".");
	return true;
}
