/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each read is noted for its thread, which costs two stores; the first ones of a process are also named, by their stack.
 * Only a request that made the driver give memory is compared with what was read, so no hit pays for it.
 */
#include "runtime/rescue/asked.h"

#include <stdatomic.h>
#include <unistd.h>

#include "alloc/observer.h"
#include "base/clock.h"
#include "base/own_stack.h"
#include "base/saturating.h"
#include "oom/gave_up.h"
#include "oom/plain.h"
#include "runtime/context/contexts.h"
#include "runtime/process/stacks.h"
#include "runtime/process/state.h"
#include "runtime/rescue/notice.h"
#include "stack/named.h"

#define MOST_READS 32
#define SITE_SIZE  200

/* Less of a GPU is no pool. */
#define TAKEN_PART 4u

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

		(void)gpc_naming_describe(naming, reading->stack, true, &site);
		write_notice(reading, sizer, site.buf, &notice);
		gpc_lock_take(&gpc_runtime.lock);
		gpc_notice_publish_asked(reading->device, &notice);
		gpc_lock_release(&gpc_runtime.lock);
	}
	gpc_naming_close(naming);
}

/* What this thread has read last. */
static _Thread_local struct {
	uint64_t available;
	uint64_t total;
} told;

/* True for a whole number of hundredths, rounded to at most the driver's step. */
static bool is_round_part(uint64_t size, uint64_t of)
{
	uint64_t exact = of / 100 * ((size + of / 200) / (of / 100));

	return gpc_larger(exact, size) - gpc_smaller(exact, size) <=
	       gpc_smaller(GPC_DRIVER_STEP, of / 4096);
}

/* Data of a program are seldom so large, and seldom a round part. */
static bool is_sized_by_free(uint64_t size)
{
	return size <= told.available &&
	       (size >= told.available / 8 * 7 || is_round_part(size, told.total) ||
		       is_round_part(size, told.available));
}

void gpc_asked_took(struct gpc_device *device, uint64_t size, uint32_t stack)
{
	bool is_sized;

	if (told.available == 0 || size < told.total / TAKEN_PART)
		return;
	is_sized = is_sized_by_free(size);
	told.available = 0; /* what follows is sized by something else */
	if (!is_sized)
		return;
	gpc_lock_take(&gpc_runtime.lock);
	device->taken_bytes = size;
	device->taken_stack = stack;
	gpc_lock_release(&gpc_runtime.lock);
}

void gpc_asked_note(size_t available, size_t total)
{
	struct gpc_context *context = gpc_context_current();
	struct reading reading;

	told.available = available;
	told.total = total;
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
