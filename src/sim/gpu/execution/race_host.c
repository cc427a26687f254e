/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host in the race detector: the work that it knows to have ended, and its reads after a free that promised that
 * work has ended.
 */
#include <stdlib.h>

#include "sim/gpu/execution/race.h"
#include "sim/gpu/execution/stream.h"

/* ---- what the host knows ---- */

/* A copy of `clock`, joined with `more` unless that is NULL. */
static struct gpc_sim_race_clock *copy_of(struct gpc_sim_race *race,
	const struct gpc_sim_race_clock *clock, const struct gpc_sim_race_clock *more)
{
	struct gpc_sim_race_clock *copy = malloc(sizeof *copy);

	if (!copy)
		return NULL;
	pthread_mutex_lock(&race->lock);
	*copy = *clock;
	if (more)
		gpc_sim_race_join(copy, more);
	pthread_mutex_unlock(&race->lock);
	return copy;
}

struct gpc_sim_race_clock *gpc_sim_race_of_event(const struct gpc_sim_event *event)
{
	struct gpc_sim_race *race = event->context->sim->race;
	struct gpc_sim_race_clock *clock = NULL;

	if (!race)
		return NULL;
	/* Another thread may be recording the event for the first time, which sets race_clock. */
	pthread_mutex_lock(&race->lock);
	clock = event->race_clock;
	pthread_mutex_unlock(&race->lock);
	return clock ? copy_of(race, clock, NULL) : NULL;
}

struct gpc_sim_race_clock *gpc_sim_race_of_stream(const struct gpc_sim_stream *stream)
{
	const struct gpc_sim_context *context = stream->context;
	struct gpc_sim_race *race = context->sim->race;

	return race ? copy_of(race, &race->tracks[stream->race_track].clock,
			      gpc_sim_is_legacy(stream) ? &context->race->blocking : NULL)
		    : NULL;
}

struct gpc_sim_race_clock *gpc_sim_race_of_context(const struct gpc_sim_context *context)
{
	struct gpc_sim_race *race = context->sim->race;

	return race ? copy_of(race, &context->race->all, NULL) : NULL;
}

struct gpc_sim_race_clock *gpc_sim_race_of_device(struct gpc_sim *sim, unsigned device)
{
	return sim->race ? copy_of(sim->race, &sim->race->devices[device], NULL) : NULL;
}

void gpc_sim_race_learn(struct gpc_sim *sim, struct gpc_sim_race_clock *clock, bool has_ended)
{
	if (!clock)
		return;
	if (has_ended) {
		pthread_mutex_lock(&sim->race->lock);
		gpc_sim_race_join(&sim->race->host, clock);
		pthread_mutex_unlock(&sim->race->lock);
	}
	free(clock);
}

/* ---- the host reads ---- */

void gpc_sim_race_freed(
	struct gpc_sim_context *context, struct gpc_sim_race_clock *before, bool is_promised)
{
	struct gpc_sim_race *race = context->sim->race;

	if (!before)
		return;
	if (is_promised) {
		pthread_mutex_lock(&race->lock);
		gpc_sim_race_join(&context->race->freed, before);
		pthread_mutex_unlock(&race->lock);
	}
	free(before);
}

void gpc_sim_race_host_reads(
	struct gpc_sim_context *context, const struct gpc_sim_race_stack *stack)
{
	struct gpc_sim_race *race = context->sim->race;
	unsigned i = 0;

	if (!race)
		return;
	pthread_mutex_lock(&race->lock);
	while (i < GPC_SIM_RACE_TRACKS && context->race->freed.at[i] <= race->host.at[i])
		i++;
	if (i < GPC_SIM_RACE_TRACKS)
		gpc_sim_race_note_locked(
			race, &(struct gpc_sim_race_violation){
				      .kind = GPC_SIM_RACE_READ, .new_owner = *stack });
	pthread_mutex_unlock(&race->lock);
}
