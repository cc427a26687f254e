/* SPDX-License-Identifier: Apache-2.0 */
/* Without --at, the moment is the newest failure that the program did not recover from, else the end. */
#include "tools/gpumem-report/holders/which_moment.h"

#include "format/balance.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/output/json.h"

void gpc_moment_find(struct gpc_moment *moment, const struct gpc_report *report, int32_t ordinal)
{
	enum gpc_at at = report->options->moment;

	*moment = (struct gpc_moment){ .at = at, .device = ordinal, .is_there = true };
	if (at == GPC_AT_PEAK)
		moment->is_there =
			gpc_recording_find_peak(report->recording, ordinal, &moment->peak);
	else if (at == GPC_AT_OOM)
		moment->is_there = gpc_report_find_oom(report, ordinal, true, &moment->oom) ||
				   gpc_report_find_oom(report, ordinal, false, &moment->oom);
	else if (at == GPC_AT_USUAL && !gpc_filter_is_of_blocks(report->options) &&
		 gpc_report_find_oom(report, ordinal, true, &moment->oom))
		moment->at = GPC_AT_OOM;
	else
		moment->at = GPC_AT_END;
}

const struct gpucache_oom *gpc_moment_oom(const struct gpc_moment *moment)
{
	return moment->at == GPC_AT_OOM && moment->is_there ? &moment->oom : NULL;
}

const char *gpc_moment_words(const struct gpc_moment *moment, const struct gpc_report *report)
{
	static const char *const ends[] = { [GPC_RUN_ALIVE] = "now",
		[GPC_RUN_ENDED] = "when it ended",
		[GPC_RUN_EXITED] = "when it exited",
		[GPC_RUN_KILLED] = "when it was killed" };

	if (moment->at == GPC_AT_OOM)
		return "when memory ran out";
	return moment->at == GPC_AT_PEAK ? "at its peak" : ends[report->recording->run_state];
}

const char *gpc_moment_key(const struct gpc_moment *moment, const struct gpc_report *report)
{
	if (moment->at == GPC_AT_OOM)
		return "oom";
	return moment->at == GPC_AT_PEAK ? "peak" : gpc_state_word(report->recording->run_state);
}

bool gpc_moment_next(const struct gpc_report *report, uint64_t *i,
	struct gpucache_device *ret_device, struct gpc_moment *ret_moment)
{
	while (gpc_report_next_device(report, i, ret_device)) {
		gpc_moment_find(ret_moment, report, ret_device->ordinal);
		if (gpc_moment_oom(ret_moment) ||
			gpc_recording_totals(report->recording, ret_device->ordinal).n_contexts > 0)
			return true;
	}
	return false;
}

enum gpc_exit gpc_moment_view(struct gpc_report *report, const char *name, gpc_moment_show show)
{
	struct json_object *root = report->options->json ? gpc_json_begin(report, name) : NULL;
	struct json_object *devices = root ? json_object_new_array() : NULL;
	struct gpucache_device device;
	struct gpc_moment moment;

	if (!root)
		gpc_report_print_who(report);
	for (uint64_t i = 0; gpc_moment_next(report, &i, &device, &moment);) {
		struct json_object *object = root ? gpc_json_device(&device) : NULL;

		if (root)
			json_object_array_add(devices, object);
		show(report, object, &device, &moment);
	}
	if (root) {
		json_object_object_add(root, "devices", devices);
		gpc_json_end(report, root);
	} else {
		gpc_report_print_notes(report);
	}
	return GPC_EXIT_MADE;
}
