/* SPDX-License-Identifier: Apache-2.0 */
/* A read takes its stack at once, and is named only if it is one of the first: names take some ten milliseconds. */
#include "runtime/rescue/asked.h"

#include <stdatomic.h>
#include <unistd.h>

#include "alloc/observer.h"
#include "base/clock.h"
#include "base/own_stack.h"
#include "oom/gave_up.h"
#include "runtime/context/contexts.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/notice.h"
#include "stack/named.h"

#define MOST_READS 32
#define SITE_SIZE  200

struct reading {
	struct gpc_device *device;
	uint32_t stack;
	uint64_t available;
	uint64_t total;
};

static atomic_uint n_reads;

static void write_notice(const struct reading *reading, const struct gpc_sizer *sizer,
	const char *site, struct gpc_notice *ret_notice)
{
	const struct gpc_device *device = reading->device;
	const struct gpucache_header *header = gpc_runtime.record.header;
	const struct gpc_gave_up gave_up = {
		.device = (int)device->ordinal,
		.gpu_name = device->known.name,
		.program = header ? gpc_base_name(header->exe) : "",
		.site = site,
		.sizer = sizer,
		.pid = (uint32_t)getpid(),
		.available = reading->available,
		.total = reading->total,
		.own = GPC_DEVICE_SUM(device, reserved_bytes) +
		       GPC_DEVICE_SUM(device, direct_bytes),
	};
	struct gpc_text text = gpc_text_init(ret_notice->text, sizeof ret_notice->text);

	gpc_gave_up_write(&gave_up, &text);
	ret_notice->time_ns = gpc_clock_monotonic_ns();
	ret_notice->n_mallocs = GPC_DEVICE_SUM(device, n_malloc);
	ret_notice->direct_bytes = GPC_DEVICE_SUM(device, direct_bytes);
	ret_notice->is_asked = true;
	ret_notice->len = text.len;
}

static void note(void *arg)
{
	const struct reading *reading = arg;
	struct gpc_naming *naming = gpc_naming_open(&gpc_runtime.stacks);
	const struct gpc_sizer *sizer;
	struct gpc_notice notice = { 0 };

	if (!naming)
		return;
	gpc_naming_expect(naming, reading->stack);
	sizer = gpc_sizer_of(gpc_naming_find(naming, reading->stack));
	if (sizer) {
		GPC_TEXT(site, SITE_SIZE);

		(void)gpc_naming_describe(naming, reading->stack, &site);
		write_notice(reading, sizer, site.buf, &notice);
		gpc_lock_take(&gpc_runtime.lock);
		gpc_notice_publish_asked(reading->device, &notice);
		gpc_lock_release(&gpc_runtime.lock);
	}
	gpc_naming_close(naming);
}

void gpc_asked_note(size_t available, size_t total)
{
	struct gpc_context *context = gpc_context_current();
	struct reading reading;

	if (!context || !gpc_runtime.has_stacks ||
		gpc_runtime.config.oom_report == GPC_OOM_REPORT_NEVER ||
		atomic_load_explicit(&n_reads, memory_order_relaxed) >= MOST_READS)
		return;
	atomic_fetch_add_explicit(&n_reads, 1, memory_order_relaxed);
	reading =
		(struct reading){ context->device, gpc_runtime_request(0).mark, available, total };
	if (reading.stack)
		gpc_own_stack_run(note, &reading);
}
