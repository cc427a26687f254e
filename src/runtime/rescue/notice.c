/* SPDX-License-Identifier: Apache-2.0 */
/* The text is that of oom/short_form.h.  What an end reads is atomic; all else is written under runtime.lock. */
#include "runtime/rescue/notice.h"

#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/pause.h"
#include "base/thread.h"
#include "runtime/process/state.h"
#include "runtime/rescue/holders.h"
#include "why/hosts.h"
#include "why/why.h"

/* Bounds the waits for other threads at the end. */
#define WAIT_MS 1000

static struct {
	/* Lock: runtime.lock, for writers. */
	struct gpc_notice buffers[GPC_MAX_DEVICES][2];
	_Atomic(struct gpc_notice *) published[GPC_MAX_DEVICES];
	_Atomic uint32_t n_unfinished; /* failures whose text is being written */
	_Atomic uint32_t speaker;      /* the thread that prints; 0: none */
	atomic_bool is_over;           /* nothing is published any more */
	atomic_bool has_said_first;
} notices;

static const char *recording(void)
{
	return gpc_runtime.record.path[0] ? gpc_runtime.record.path : NULL;
}

void gpc_notice_write(
	struct gpc_device *device, const struct gpucache_oom *oom, struct gpc_notice *ret_notice)
{
	struct gpc_holder_names names = gpc_holder_names_open(device, oom);
	const struct gpc_describer describer = gpc_holder_describer(&names);
	const struct gpc_evidence evidence = gpc_holder_evidence(&names);
	const struct gpucache_header *header = gpc_runtime.record.header;
	const struct gpc_short_form form = {
		.oom = oom,
		.conf = gpc_runtime.config.text,
		.describer = &describer,
		.evidence = &evidence,
		.gpu_name = device->known.name,
		.physical = (int)device->known.physical - 1,
		.program = header ? gpc_base_name(header->exe) : "",
		.recording = recording(),
		.report = gpc_runtime.report_command,
		.pid = (uint32_t)getpid(),
		.rank = header ? header->rank : -1,
		.world_size = header ? header->world_size : -1,
	};
	struct gpc_text text = gpc_text_init(ret_notice->text, sizeof ret_notice->text);

	ret_notice->answer = gpc_short_form_write(&form, &text);
	ret_notice->is_hosted = gpc_is_hosted(gpc_evidence_frames(&evidence, oom->stack));
	gpc_holder_names_close(&names);
	ret_notice->number = oom->number;
	ret_notice->time_ns = gpc_clock_monotonic_ns();
	ret_notice->n_mallocs = GPC_DEVICE_SUM(device, n_malloc);
	ret_notice->is_caught = ret_notice->is_asked = false;
	ret_notice->len = text.len;
}

void gpc_notice_publish(const struct gpc_device *device, const struct gpc_notice *notice)
{
	struct gpc_notice *buffers = notices.buffers[device->ordinal];
	_Atomic(struct gpc_notice *) *published = &notices.published[device->ordinal];
	struct gpc_notice *idle = atomic_load(published) == buffers ? &buffers[1] : buffers;

	/* After the load: if an end has taken the text meanwhile, and prints it, this is true. */
	if (atomic_load(&notices.is_over))
		return;
	if (notice)
		*idle = *notice;
	atomic_store(published, notice ? idle : NULL);
}

void gpc_notice_publish_asked(const struct gpc_device *device, const struct gpc_notice *notice)
{
	const struct gpc_notice *now = atomic_load(&notices.published[device->ordinal]);

	if (!now || now->is_asked)
		gpc_notice_publish(device, notice);
}

void gpc_notice_begin(void)
{
	atomic_fetch_add(&notices.n_unfinished, 1);
}

void gpc_notice_end(void)
{
	atomic_fetch_sub(&notices.n_unfinished, 1);
}

void gpc_notice_say_first(const struct gpc_device *device, const struct gpucache_oom *oom,
	const struct gpc_notice *notice)
{
	const char *path = recording();
	GPC_TEXT(size, 32);
	GPC_TEXT(where, GPC_RECORD_MAX_PATH + GPC_REPORT_COMMAND_SIZE);

	if (atomic_exchange(&notices.has_said_first, true))
		return;
	gpc_text_add_bytes(&size, oom->requested);
	if (path && gpc_text_is_plain(path))
		gpc_text_add(&where, "; %s oom %s", gpc_runtime.report_command, path);
	else if (path)
		gpc_text_add(&where, "; %s oom %u", gpc_runtime.report_command, (unsigned)getpid());
	gpc_log("out of memory on GPU %u: %s asked for, %s (%s)%s", device->ordinal, size.buf,
		gpc_cause_word(notice->answer.cause), gpc_strength_word(notice->answer.strength),
		where.buf);
}

void gpc_notice_say_now(const struct gpc_notice *notice)
{
	gpc_log_block(notice->text, notice->len);
	if (!notice->is_asked)
		gpc_record_oom_say(&gpc_runtime.record, notice->number);
}

static void say_of(uint32_t ordinal)
{
	const struct gpc_device *device = &gpc_runtime.devices[ordinal];
	const struct gpc_notice *notice = atomic_exchange(&notices.published[ordinal], NULL);
	uint64_t n_mallocs = GPC_DEVICE_SUM(device, n_malloc);
	uint64_t age_ns;

	if (!notice)
		return;
	age_ns = gpc_clock_monotonic_ns() - notice->time_ns;
	if (age_ns > GPC_SURVIVED_NS && (notice->is_caught || notice->is_asked))
		return;
	if (notice->is_asked &&
		(n_mallocs != notice->n_mallocs ||
			GPC_DEVICE_SUM(device, direct_bytes) > notice->direct_bytes))
		return;
	if (age_ns > GPC_SURVIVED_NS && n_mallocs > notice->n_mallocs) {
		GPC_TEXT(age, 32);

		gpc_text_add_age(&age, age_ns);
		gpc_log("this request failed %s before the end; %llu requests have succeeded "
			"since, so the end may have another reason",
			age.buf, (unsigned long long)(n_mallocs - notice->n_mallocs));
	}
	gpc_notice_say_now(notice);
}

/* A thread that is inside may be the one that would have to go on: a handler of the program interrupted it. */
static bool wait_while(const _Atomic uint32_t *count)
{
	uint64_t left_ms = gpc_thread.is_inside ? 0 : WAIT_MS;

	while (atomic_load(count) > 0)
		if (!gpc_pause(1, &left_ms))
			return false;
	return true;
}

void gpc_notice_say(void)
{
	uint32_t none = 0;

	if (atomic_load(&notices.speaker) == gpc_thread_id())
		return;
	(void)wait_while(&notices.n_unfinished);
	if (!atomic_compare_exchange_strong(&notices.speaker, &none, gpc_thread_id())) {
		/* The end of this thread would cut the other one short. */
		(void)wait_while(&notices.speaker);
		return;
	}
	atomic_store(&notices.is_over, true);
	for (uint32_t i = 0; i < gpc_runtime.n_devices; i++)
		say_of(i);
	atomic_store(&notices.speaker, 0);
}
