/* SPDX-License-Identifier: Apache-2.0 */
/* Without --at, the moment is the newest failure that the program did not recover from, else the end. */
#include "tools/gpumem-report/holders/moment.h"

#include "format/sheet.h"
#include "tools/gpumem-report/holders/filter.h"
#include "tools/gpumem-report/output/page.h"

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

bool gpc_moment_is_used(const struct gpc_report *report, const struct gpc_moment *moment)
{
	return gpc_moment_oom(moment) ||
	       gpc_recording_totals(report->recording, moment->device).n_contexts > 0;
}

bool gpc_moment_next(const struct gpc_report *report, uint64_t *i,
	struct gpucache_device *ret_device, struct gpc_moment *ret_moment)
{
	while (gpc_report_next_device(report, i, ret_device)) {
		gpc_moment_find(ret_moment, report, ret_device->ordinal);
		if (gpc_moment_is_used(report, ret_moment))
			return true;
	}
	return false;
}

enum gpc_exit gpc_moment_view(struct gpc_report *report, const char *view, gpc_moment_tell tell)
{
	struct gpc_document *doc = report->doc;
	struct gpucache_device device;
	struct gpc_moment moment;

	gpc_page_begin(report, view);
	gpc_page_say_who(report, GPC_INK_PLAIN, "", NULL);
	gpc_document_open(doc, &gpc_page_devices);
	for (uint64_t i = 0; gpc_moment_next(report, &i, &device, &moment);) {
		gpc_page_open_device(doc, &device);
		gpc_document_member(doc, "moment", gpc_name(gpc_moment_key(&moment, report)));
		tell(report, &device, &moment);
		gpc_document_close(doc);
	}
	gpc_document_close(doc);
	gpc_page_notes(report);
	gpc_document_end(doc);
	return GPC_EXIT_MADE;
}
