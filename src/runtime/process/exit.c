/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process without a context leaves no recording.  Our handler was registered after cuInit, so it runs before the
 * driver's own.  It frees nothing: the driver takes all memory back, and static destructors of the program may still
 * call us.
 */
#include "runtime/process/exit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own_stack.h"
#include "base/thread.h"
#include "runtime/context/contexts.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/observe.h"
#include "runtime/process/state.h"
#include "runtime/rescue/holders.h"
#include "runtime/rescue/notice.h"
#include "runtime/rescue/spill.h"

static bool has_ended;

static void print_leaks(void *arg)
{
	(void)arg;
	for (uint32_t d = 0; d < gpc_runtime.n_devices; d++) {
		struct gpc_device *device = &gpc_runtime.devices[d];
		uint64_t bytes = GPC_DEVICE_SUM(device, requested_bytes) +
				 GPC_DEVICE_SUM(device, direct_bytes) -
				 /* The program cannot free what the driver holds for itself. */
				 GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_POOL]) -
				 GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_GRAPH]) -
				 GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_REFUSED]) -
				 GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_CONTEXT]) -
				 GPC_DEVICE_SUM(device, kind_bytes[GPUCACHE_KIND_MODULE]);
		GPC_TEXT(text, 48);

		if (bytes == 0)
			continue;
		gpc_text_add_bytes(&text, bytes);
		gpc_log("GPU %u: %s not freed when the process ended; by call site: %s leaks %s", d,
			text.buf, gpc_runtime.report_command, gpc_runtime.record.path);
		gpc_holders_print(device, bytes);
	}
}

/* Only the lowest byte of a status gets to the parent. */
void gpc_runtime_is_ending(int status)
{
	if ((status & 0xff) && gpc_process_is_exactly_ours())
		gpc_notice_say();
}

void gpc_runtime_at_exit_without_handlers(void)
{
	if (gpc_process_is_exactly_ours() && !gpc_record_discard_unused(&gpc_runtime.record))
		gpc_record_end_without_handlers(&gpc_runtime.record, gpc_clock_monotonic_ns());
}

static void end(void *arg)
{
	struct gpc_context *context = gpc_context_current();

	(void)arg;
	if (context)
		gpc_observe_device(context, true);
	gpc_ipc_end(false);
	gpc_spill_say_end();
	if (!gpc_record_discard_unused(&gpc_runtime.record))
		gpc_record_end(&gpc_runtime.record, gpc_clock_monotonic_ns());
	has_ended = true;
}

void gpc_runtime_at_exit(int status, void *arg)
{
	(void)arg;
	gpc_runtime_is_ending(status);
	if (!gpc_process_is_ours() || !gpc_thread_enter())
		return;
	if ((status & 0xff) == 0)
		gpc_record_state_add(&gpc_runtime.record, GPUCACHE_STATE_SUCCESS);
	gpc_own_stack_run(end, NULL);
	gpc_thread_leave();
}

void gpc_runtime_at_last(void)
{
	if (!has_ended || !gpc_runtime.config.leak_report || !gpc_process_is_ours() ||
		!gpc_thread_enter())
		return;
	gpc_own_stack_run(print_leaks, NULL);
	gpc_thread_leave();
}
