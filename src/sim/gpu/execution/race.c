/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each stream has a vector clock; two clocks are joined where the timeline orders their streams.  A touch of memory is
 * stored until the host knows that its work has ended.  A new owner, and each of its submissions, is checked against
 * the stored touches of the same bytes: O(touches in flight).
 */
#include "sim/gpu/execution/race.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "sim/gpu/execution/stream.h"

static struct gpc_sim_race_track *track_of(
	struct gpc_sim_race *race, const struct gpc_sim_stream *stream)
{
	return &race->tracks[stream->race_track];
}

/* ---- owners ---- */

/* The index of the first owner whose memory ends after ptr. */
static size_t first_after(const struct gpc_sim_race *race, uint64_t ptr)
{
	size_t low = 0;
	size_t high = race->n_owners;

	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct gpc_sim_race_owner *owner = &race->owners[middle];

		if (owner->ptr + owner->size <= ptr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_owner_locked(struct gpc_sim_race *race, size_t at)
{
	race->n_owners--;
	memmove(&race->owners[at], &race->owners[at + 1],
		(race->n_owners - at) * sizeof *race->owners);
}

/* Grows the array to hold one more element of `size` bytes; NULL without memory, with the array unchanged. */
static void *make_room(void *items, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? *room * 2 : 64;
	void *grown;

	if (n < *room)
		return items;
	grown = realloc(items, more * size);
	if (grown)
		*room = more;
	return grown;
}

/* ---- violations ---- */

void gpc_sim_race_note_locked(
	struct gpc_sim_race *race, const struct gpc_sim_race_violation *violation)
{
	if (race->n_violations < GPC_SIM_RACE_KEPT)
		race->violations[race->n_violations] = *violation;
	race->n_violations++;
}

static void report_locked(struct gpc_sim_race *race, enum gpc_sim_race_kind kind,
	const struct gpc_sim_race_touch *touch, struct gpc_sim_race_owner *owner)
{
	uint64_t from = touch->ptr > owner->ptr ? touch->ptr : owner->ptr;
	uint64_t touch_end = touch->ptr + touch->size;
	uint64_t owner_end = owner->ptr + owner->size;
	uint64_t to = touch_end < owner_end ? touch_end : owner_end;

	if (owner->is_reported)
		return;
	owner->is_reported = true;
	gpc_sim_race_note_locked(race, &(struct gpc_sim_race_violation){
					       .kind = kind,
					       .ptr = from,
					       .size = to - from,
					       .old_stream = touch->stream,
					       .old_owner = touch->stack,
					       .new_owner = owner->stack,
				       });
}

static bool is_touched(const struct gpc_sim_race_touch *touch, uint64_t ptr, uint64_t size)
{
	return touch->ptr < ptr + size && ptr < touch->ptr + touch->size;
}

/* If the host knows that the work of touch i has ended, moves the last touch into its place. */
static bool drop_if_ended(struct gpc_sim_race *race, size_t i)
{
	const struct gpc_sim_race_touch *touch = &race->touches[i];

	if (race->host.at[touch->track] < touch->number)
		return false;
	race->touches[i] = race->touches[--race->n_touches];
	return true;
}

static bool has(const struct gpc_sim_race_clock *clock, const struct gpc_sim_race_touch *touch)
{
	return clock->at[touch->track] >= touch->number;
}

/* True if the next submission to this stream is ordered after the touch. */
static bool is_ordered_after(struct gpc_sim_race *race, const struct gpc_sim_race_track *track,
	const struct gpc_sim_race_touch *touch)
{
	const struct gpc_sim_stream *stream = track->stream;
	const struct gpc_sim_context *context = stream->context;

	if (has(&track->clock, touch) || has(&context->race->barrier, touch))
		return true;
	if (gpc_sim_is_legacy(stream))
		return has(&context->race->blocking, touch);
	return gpc_sim_is_blocking(stream) && has(&track_of(race, &context->legacy)->clock, touch);
}

/* True if a stream of the context that the program uses is not ordered after the touch. */
static bool may_race_on_a_stream(struct gpc_sim_race *race, const struct gpc_sim_race_touch *touch,
	const struct gpc_sim_context *context)
{
	for (unsigned i = 0; i < GPC_SIM_RACE_TRACKS; i++) {
		const struct gpc_sim_race_track *track = &race->tracks[i];

		if (track->stream && track->is_used && track->stream->context == context &&
			!is_ordered_after(race, track, touch))
			return true;
	}
	return false;
}

/* True if the new owner may at once use a stream that is not ordered after the touch. */
static bool may_race(struct gpc_sim_race *race, const struct gpc_sim_race_touch *touch,
	const struct gpc_sim_race_owner *owner)
{
	if (owner->stream)
		return !is_ordered_after(race, track_of(race, owner->stream), touch);
	return may_race_on_a_stream(race, touch, owner->context);
}

static void check_owner_locked(struct gpc_sim_race *race, struct gpc_sim_race_owner *owner)
{
	for (size_t i = 0; i < race->n_touches;) {
		const struct gpc_sim_race_touch *touch = &race->touches[i];

		if (drop_if_ended(race, i))
			continue;
		i++;
		if (!race->is_late && is_touched(touch, owner->ptr, owner->size) &&
			may_race(race, touch, owner))
			report_locked(race, GPC_SIM_RACE_HANDED_OUT, touch, owner);
	}
}

/* Reports touches of these bytes by other owners which `clock`, that of new work of `owner`, does not follow. */
static void check_work_locked(struct gpc_sim_race *race, enum gpc_sim_race_kind kind,
	struct gpc_sim_race_owner *owner, const struct gpc_sim_race_clock *clock, uint64_t ptr,
	uint64_t size)
{
	for (size_t i = 0; i < race->n_touches;) {
		const struct gpc_sim_race_touch *touch = &race->touches[i];

		if (drop_if_ended(race, i))
			continue;
		i++;
		if (touch->owner != owner->number && is_touched(touch, ptr, size) &&
			!has(clock, touch))
			report_locked(race, kind, touch, owner);
	}
}

/* ---- called by the program ---- */

bool gpc_sim_race_attach(struct gpc_sim *sim)
{
	struct gpc_sim_race *race = calloc(1, sizeof *race);

	if (!race)
		return false;
	pthread_mutex_init(&race->lock, NULL);
	sim->race = race;
	return true;
}

void gpc_sim_race_destroy(struct gpc_sim *sim)
{
	if (!sim->race)
		return;
	pthread_mutex_destroy(&sim->race->lock);
	free(sim->race->owners);
	free(sim->race->touches);
	free(sim->race);
	sim->race = NULL;
}

static bool own(struct gpc_sim *sim, const struct gpc_sim_context *context,
	const struct gpc_sim_stream *stream, uint64_t ptr, uint64_t size,
	const struct gpc_sim_race_stack *stack)
{
	struct gpc_sim_race *race = sim->race;

	if (!race)
		return false;
	pthread_mutex_lock(&race->lock);
	struct gpc_sim_race_owner *owners =
		make_room(race->owners, race->n_owners, &race->room_owners, sizeof *race->owners);
	if (owners) {
		size_t at;

		race->owners = owners;
		at = first_after(race, ptr);
		memmove(&owners[at + 1], &owners[at], (race->n_owners - at) * sizeof *owners);
		race->n_owners++;
		owners[at] = (struct gpc_sim_race_owner){
			.ptr = ptr,
			.size = size,
			.number = ++race->n_owners_ever,
			.context = context,
			.stream = stream,
			.stack = *stack,
		};
		check_owner_locked(race, &owners[at]);
	}
	pthread_mutex_unlock(&race->lock);
	return owners != NULL;
}

bool gpc_sim_race_own(struct gpc_sim *sim, const struct gpc_sim_context *context, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack)
{
	return own(sim, context, NULL, ptr, size, stack);
}

bool gpc_sim_race_own_on(struct gpc_sim *sim, const struct gpc_sim_stream *stream, uint64_t ptr,
	uint64_t size, const struct gpc_sim_race_stack *stack)
{
	return own(sim, stream->context, stream, ptr, size, stack);
}

static void expose_or_end(struct gpc_sim_race *race, uint64_t ptr, bool is_end)
{
	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	size_t at = first_after(race, ptr);
	struct gpc_sim_race_owner *owner = at < race->n_owners ? &race->owners[at] : NULL;
	if (owner && owner->ptr == ptr && is_end)
		remove_owner_locked(race, at);
	else if (owner && owner->ptr == ptr)
		check_work_locked(race, GPC_SIM_RACE_EXPOSED, owner, &race->host, ptr, owner->size);
	pthread_mutex_unlock(&race->lock);
}

void gpc_sim_race_expose(struct gpc_sim *sim, uint64_t ptr)
{
	expose_or_end(sim->race, ptr, false);
}

void gpc_sim_race_disown(struct gpc_sim *sim, uint64_t ptr)
{
	expose_or_end(sim->race, ptr, true);
}

void gpc_sim_race_disown_all(struct gpc_sim_context *context)
{
	struct gpc_sim_race *race = context->sim->race;

	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	for (size_t i = race->n_owners; i-- > 0;)
		if (race->owners[i].context == context)
			remove_owner_locked(race, i);
	pthread_mutex_unlock(&race->lock);
}

uint64_t gpc_sim_race_n_violations(struct gpc_sim *sim)
{
	return sim->race ? atomic_load(&sim->race->n_violations) : 0;
}

/* ---- contexts and streams ---- */

bool gpc_sim_race_open_context(struct gpc_sim_context *context)
{
	if (!context->sim->race)
		return true;
	context->race = calloc(1, sizeof *context->race);
	if (!context->race)
		return false;
	if (gpc_sim_race_open_stream(&context->legacy))
		return true;
	free(context->race);
	context->race = NULL;
	return false;
}

void gpc_sim_race_close_context(struct gpc_sim_context *context)
{
	if (!context->race)
		return;
	gpc_sim_race_disown_all(context);
	gpc_sim_race_close_stream(&context->legacy);
	free(context->race);
	context->race = NULL;
}

bool gpc_sim_race_open_stream(struct gpc_sim_stream *stream)
{
	struct gpc_sim_race *race = stream->context->sim->race;
	uint32_t i = 0;

	if (!race)
		return true;
	pthread_mutex_lock(&race->lock);
	while (i < GPC_SIM_RACE_TRACKS &&
		(race->tracks[i].stream || race->host.at[i] < race->tracks[i].n))
		i++;
	if (i < GPC_SIM_RACE_TRACKS) {
		struct gpc_sim_race_track *track = &race->tracks[i];

		stream->race_track = i;
		track->stream = stream;
		track->is_used = false;
		track->is_early = false;
		memset(&track->clock, 0, sizeof track->clock);
		track->clock.at[i] = track->n;
	}
	pthread_mutex_unlock(&race->lock);
	return i < GPC_SIM_RACE_TRACKS;
}

void gpc_sim_race_close_stream(struct gpc_sim_stream *stream)
{
	struct gpc_sim_race *race = stream->context->sim->race;

	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	track_of(race, stream)->stream = NULL;
	pthread_mutex_unlock(&race->lock);
}

/* ---- work ---- */

/* Stores the clock before a kernel: early kernels that follow are ordered after that clock only. */
static void note_early_locked(
	struct gpc_sim_race_track *track, const struct gpc_sim_effect *work, bool is_early)
{
	if (is_early)
		gpc_sim_race_join(&track->early, &track->stream->context->race->barrier);
	else if (work && work->kind == GPC_SIM_EFFECT_KERNEL)
		track->early = track->clock;
	track->is_early = is_early;
}

void gpc_sim_race_advance(
	struct gpc_sim_stream *stream, const struct gpc_sim_effect *work, bool is_early)
{
	struct gpc_sim_context *context = stream->context;
	struct gpc_sim_race *race = context->sim->race;

	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	struct gpc_sim_race_track *track = track_of(race, stream);
	gpc_sim_race_join(&track->clock, &context->race->barrier);
	if (gpc_sim_is_legacy(stream))
		gpc_sim_race_join(&track->clock, &context->race->blocking);
	else if (gpc_sim_is_blocking(stream))
		gpc_sim_race_join(&track->clock, &track_of(race, &context->legacy)->clock);
	note_early_locked(track, work, is_early);
	track->clock.at[stream->race_track] = ++track->n;
	if (gpc_sim_is_blocking(stream) && !gpc_sim_is_legacy(stream))
		gpc_sim_race_join(&context->race->blocking, &track->clock);
	gpc_sim_race_join(&context->race->all, &track->clock);
	gpc_sim_race_join(&race->devices[context->device->ordinal], &track->clock);
	pthread_mutex_unlock(&race->lock);
}

/* Adds a touch of these bytes by work of `owner` on the stream. */
static void add_touch_locked(struct gpc_sim_race *race, const struct gpc_sim_stream *stream,
	const struct gpc_sim_race_owner *owner, uint64_t ptr, uint64_t size)
{
	struct gpc_sim_race_touch *touches = make_room(
		race->touches, race->n_touches, &race->room_touches, sizeof *race->touches);

	if (!touches) {
		race->n_lost++;
		return;
	}
	race->touches = touches;
	touches[race->n_touches++] = (struct gpc_sim_race_touch){
		.ptr = ptr,
		.size = size,
		.owner = owner->number,
		.stream = stream->number,
		.track = stream->race_track,
		.number = track_of(race, stream)->n,
		.stack = owner->stack,
	};
}

static void touch_locked(
	struct gpc_sim_race *race, const struct gpc_sim_stream *stream, uint64_t ptr, uint64_t size)
{
	for (size_t i = first_after(race, ptr);
		i < race->n_owners && race->owners[i].ptr < ptr + size; i++) {
		struct gpc_sim_race_owner *owner = &race->owners[i];
		uint64_t from = ptr > owner->ptr ? ptr : owner->ptr;
		uint64_t end = owner->ptr + owner->size;
		uint64_t to = ptr + size < end ? ptr + size : end;
		const struct gpc_sim_race_track *track = track_of(race, stream);

		check_work_locked(race, GPC_SIM_RACE_OVERTAKEN, owner,
			track->is_early ? &track->early : &track->clock, from, to - from);
		add_touch_locked(race, stream, owner, from, to - from);
	}
}

static uint64_t span_of(const struct gpc_sim_effect *effect, uint64_t pitch)
{
	return effect->width ? (effect->rows - 1) * pitch + effect->width : 0;
}

static void touch_all_locked(struct gpc_sim_race *race, const struct gpc_sim_stream *stream,
	const struct gpc_sim_effect *effect)
{
	switch (effect->kind) {
	case GPC_SIM_EFFECT_COPY:
		if (!effect->staged)
			touch_locked(race, stream, effect->src, span_of(effect, effect->src_pitch));
		touch_locked(race, stream, effect->dst, span_of(effect, effect->dst_pitch));
		break;
	case GPC_SIM_EFFECT_FILL:
		touch_locked(race, stream, effect->dst, span_of(effect, effect->dst_pitch));
		break;
	case GPC_SIM_EFFECT_KERNEL:
		for (unsigned i = 0; i < effect->n_ranges; i++)
			touch_locked(race, stream, effect->ranges[i].ptr, effect->ranges[i].size);
		break;
	case GPC_SIM_EFFECT_NONE:
	case GPC_SIM_EFFECT_FREE:
	case GPC_SIM_EFFECT_POOL_FREE:
	case GPC_SIM_EFFECT_GRAPH_ALLOC:
	case GPC_SIM_EFFECT_GRAPH_FREE:
	case GPC_SIM_EFFECT_HOST:
		break;
	}
}

void gpc_sim_race_submit(struct gpc_sim_stream *stream, const struct gpc_sim_effect *effect)
{
	struct gpc_sim_race *race = stream->context->sim->race;

	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	track_of(race, stream)->is_used = true;
	touch_all_locked(race, stream, effect);
	pthread_mutex_unlock(&race->lock);
}

/* ---- events ---- */

/* Sets the event's clock.  Without memory for a clock the event orders nothing, so a wait for it may seem a race. */
static void set_event(struct gpc_sim_race *race, struct gpc_sim_event *event,
	const struct gpc_sim_race_clock *clock)
{
	pthread_mutex_lock(&race->lock);
	if (!event->race_clock)
		event->race_clock = malloc(sizeof *event->race_clock);
	if (event->race_clock)
		*event->race_clock = *clock;
	pthread_mutex_unlock(&race->lock);
}

void gpc_sim_race_record(struct gpc_sim_stream *stream, struct gpc_sim_event *event)
{
	struct gpc_sim_race *race = stream->context->sim->race;

	if (race)
		set_event(race, event, &track_of(race, stream)->clock);
}

void gpc_sim_race_record_context(struct gpc_sim_context *context, struct gpc_sim_event *event)
{
	if (context->sim->race)
		set_event(context->sim->race, event, &context->race->all);
}

static void join_event(struct gpc_sim_race *race, struct gpc_sim_race_clock *clock,
	const struct gpc_sim_event *event)
{
	pthread_mutex_lock(&race->lock);
	if (event->race_clock)
		gpc_sim_race_join(clock, event->race_clock);
	pthread_mutex_unlock(&race->lock);
}

void gpc_sim_race_wait(struct gpc_sim_stream *stream, const struct gpc_sim_event *event)
{
	struct gpc_sim_race *race = stream->context->sim->race;

	if (race)
		join_event(race, &track_of(race, stream)->clock, event);
}

void gpc_sim_race_wait_context(struct gpc_sim_context *context, const struct gpc_sim_event *event)
{
	if (context->sim->race)
		join_event(context->sim->race, &context->race->barrier, event);
}

void gpc_sim_race_close_event(struct gpc_sim_event *event)
{
	free(event->race_clock);
	event->race_clock = NULL;
}
