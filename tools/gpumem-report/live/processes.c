/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each reading opens every recording anew.  From the last reading it needs only the counters of calls and waits, whose
 * differences are the rates.
 */
#include "tools/gpumem-report/live/processes.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "format/array.h"
#include "format/memory.h"
#include "format/sheet.h"
#include "tools/gpumem-report/target.h"

/* Growth is measured over the last points of the history: of a full one, which has 512 to 1,024, at most a fifth. */
#define GROWTH_POINTS 96

void live_init(struct live *live, const struct gpc_report *report)
{
	*live = (struct live){ .report = report,
		.processes = gpc_new(LIVE_MAX_PROCESSES, sizeof *live->processes) };
}

void live_fini(struct live *live)
{
	for (unsigned p = 0; p < live->n_processes; p++) {
		free(live->processes[p].path);
		for (unsigned i = 0; i < live->processes[p].n_names; i++)
			free(live->processes[p].names[i].where);
	}
	free(live->processes);
	*live = (struct live){ 0 };
}

/* The least bytes at any time from `from_ns` to `to_ns`; the bytes of a point hold until the next point. */
static uint64_t floor_of(
	const struct gpucache_point *points, size_t n, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t found = UINT64_MAX;

	for (size_t i = 0; i < n; i++) {
		if (points[i].time_ns <= from_ns)
			found = points[i].live_bytes;
		else if (points[i].time_ns < to_ns)
			found = gpc_smaller(found, points[i].live_bytes);
	}
	return found;
}

/* The growth at `now_ns`, in bytes a second, from points in the order of time; 0 for fewer than four points. */
static double growth_of(const struct gpucache_point *points, size_t n, uint64_t now_ns)
{
	uint64_t quarter_ns = n ? gpc_bytes_less(now_ns, points[0].time_ns) / 4 : 0;
	uint64_t floors[3];

	if (n < 4 || quarter_ns == 0)
		return 0;
	for (unsigned i = 0; i < 3; i++)
		floors[i] = floor_of(points, n, points[0].time_ns + (i + 1) * quarter_ns,
			points[0].time_ns + (i + 2) * quarter_ns);
	return (double)gpc_smaller(
		       gpc_bytes_less(floors[2], floors[1]), gpc_bytes_less(floors[1], floors[0])) *
	       1e9 / (double)quarter_ns;
}

static void read_history(
	struct live_gpu *gpu, const struct gpc_recording *recording, uint64_t now_ns)
{
	struct gpc_history_view history;
	size_t n;

	gpu->growth_a_s = 0;
	if (!gpc_recording_find_history(recording, gpu->ordinal, &history))
		return;
	gpu->n_points = (unsigned)gpc_smaller(history.n_points, LIVE_MAX_POINTS);
	for (unsigned i = 0; i < gpu->n_points; i++)
		gpu->points[i] = history.points[history.n_points - gpu->n_points + i].live_bytes;
	n = gpc_smaller(history.n_points, GROWTH_POINTS);
	gpu->growth_a_s = growth_of(&history.points[history.n_points - n], n, now_ns);
}

static int compare_holders(const void *left, const void *right)
{
	const struct live_holder *a = left;
	const struct live_holder *b = right;

	return GPC_ORDER(b->bytes, a->bytes) ?: GPC_ORDER(a->stack, b->stack);
}

static void read_holders(struct live_gpu *gpu, const struct gpc_recording *recording)
{
	uint64_t count = recording->regions[GPUCACHE_REGION_SITES].count;
	struct live_holder *all = gpc_new(count + GPUCACHE_KIND_COUNT, sizeof *all);
	struct gpucache_site site;
	size_t n = 0;

	for (uint64_t i = 0; i < count; i++)
		if (gpc_recording_read_site(recording, i, &site) && site.live_bytes &&
			site.device == gpu->ordinal)
			all[n++] = (struct live_holder){ .stack = site.stack,
				.bytes = site.live_bytes,
				.n_blocks = site.live_blocks };
	for (uint32_t kind = 0; kind < GPUCACHE_KIND_COUNT; kind++)
		if (gpc_kind_is_implicit(kind) && gpu->sum.kind_bytes[kind])
			all[n++] = (struct live_holder){ .kind = kind,
				.bytes = gpu->sum.kind_bytes[kind] };
	qsort(all, n, sizeof *all, compare_holders);
	gpu->n_holders = (unsigned)gpc_smaller(n, LIVE_MAX_HOLDERS);
	memcpy(gpu->holders, all, gpu->n_holders * sizeof *all);
	free(all);
}

/* Estimates how long the memory that is free, cached or pending lasts at the present growth. */
static void find_end(struct live_gpu *gpu)
{
	uint64_t room = gpc_bytes_add(
		gpu->balance.device_free, gpc_bytes_add(gpu->balance.cached, gpu->balance.pending));

	gpu->seconds_left = -1;
	if (gpu->has_balance && gpu->balance.device_free != GPUCACHE_UNKNOWN && gpu->growth_a_s > 0)
		gpu->seconds_left = (double)room / gpu->growth_a_s;
}

static double rate(uint64_t now, uint64_t before, uint64_t ns)
{
	return ns ? (double)gpc_bytes_less(now, before) * 1e9 / (double)ns : -1;
}

static void read_gpu(struct live_gpu *gpu, const struct gpc_recording *recording,
	const struct gpucache_device *device, uint64_t now_ns, uint64_t since_ns)
{
	struct gpc_device_totals totals = gpc_recording_totals(recording, device->ordinal);
	uint64_t n_calls = gpc_bytes_add(totals.sum.n_malloc, totals.sum.n_free);
	struct gpucache_torch torch;

	if (gpc_recording_find_torch(recording, device->ordinal, &torch))
		n_calls = gpc_bytes_add(n_calls, gpc_bytes_add(torch.n_malloc, torch.n_free));
	gpu->calls_a_s = rate(n_calls, gpu->n_calls, since_ns);
	gpu->waits_a_s = rate(totals.sum.n_sync, gpu->sum.n_sync, since_ns);
	gpu->ordinal = device->ordinal;
	memcpy(gpu->name, device->name, sizeof gpu->name);
	memcpy(gpu->uuid, device->uuid, sizeof gpu->uuid);
	gpu->look_ns = device->look_ns;
	gpu->sum = totals.sum;
	gpu->n_calls = n_calls;
	gpu->has_balance = gpc_recording_balance(recording, device, &gpu->balance);
	read_history(gpu, recording, now_ns);
	read_holders(gpu, recording);
	find_end(gpu);
}

static const char *find_name(const struct live_process *process, uint32_t stack)
{
	for (unsigned i = 0; i < process->n_names; i++)
		if (process->names[i].stack == stack)
			return process->names[i].where;
	return NULL;
}

static void add_name(struct live_process *process, struct gpc_frames *frames, uint32_t stack)
{
	GPC_TEXT(text, 400);

	/* Drops the oldest name.  If its stack is among the largest holders again, the stack gets a name again. */
	if (process->n_names == LIVE_MAX_NAMES) {
		free(process->names[0].where);
		memmove(&process->names[0], &process->names[1],
			--process->n_names * sizeof process->names[0]);
	}
	gpc_frames_where(frames, stack, GPC_SITE_CALLERS, &text);
	process->names[process->n_names++] = (struct live_name){ stack, gpc_copy(text.buf) };
}

/* Sets `where` of all holders.  Reads symbols only for stacks that are not in the cache process->names. */
static void name_holders(
	struct live *live, struct live_process *process, const struct gpc_recording *recording)
{
	struct gpc_frames *frames = NULL;

	for (unsigned g = 0; g < process->n_gpus; g++)
		for (unsigned i = 0; i < process->gpus[g].n_holders; i++) {
			const struct live_holder *holder = &process->gpus[g].holders[i];

			if (holder->kind || find_name(process, holder->stack))
				continue;
			if (!frames)
				frames = gpc_frames_create(
					recording, &live->report->options->places);
			add_name(process, frames, holder->stack);
		}
	gpc_frames_destroy(frames);
	for (unsigned g = 0; g < process->n_gpus; g++)
		for (unsigned i = 0; i < process->gpus[g].n_holders; i++) {
			struct live_holder *holder = &process->gpus[g].holders[i];

			holder->where = holder->kind ? gpc_kind_words(holder->kind)
						     : find_name(process, holder->stack);
		}
}

static void read_process(
	struct live *live, struct live_process *process, const struct gpc_recording *recording)
{
	const bool is_alive = recording->run_state == GPC_RUN_ALIVE;
	uint64_t now_ns = is_alive ? live->now_ns : gpc_recording_last_ns(recording);
	uint64_t since_ns = process->look_ns ? gpc_bytes_less(live->now_ns, process->look_ns) : 0;
	struct gpucache_device device;
	unsigned n = 0;

	process->header = recording->header;
	process->state = recording->run_state;
	process->is_seen = true;
	process->look_ns = live->now_ns;
	for (uint64_t i = 0;
		i < recording->regions[GPUCACHE_REGION_DEVICES].count && n < LIVE_MAX_GPUS; i++) {
		if (!gpc_recording_read_device(recording, i, &device) ||
			!gpc_report_wants(live->report, device.ordinal) ||
			gpc_recording_totals(recording, device.ordinal).n_contexts == 0)
			continue;
		if (process->gpus[n].ordinal != device.ordinal)
			process->gpus[n] = (struct live_gpu){ 0 };
		read_gpu(&process->gpus[n++], recording, &device, now_ns, since_ns);
	}
	process->n_gpus = n;
	name_holders(live, process, recording);
}

static struct live_process *find_process(struct live *live, const char *path)
{
	struct live_process *process;

	for (unsigned p = 0; p < live->n_processes; p++)
		if (strcmp(live->processes[p].path, path) == 0)
			return &live->processes[p];
	if (live->n_processes == LIVE_MAX_PROCESSES)
		return NULL;
	process = &live->processes[live->n_processes++];
	*process = (struct live_process){ .path = gpc_copy(path) };
	return process;
}

static void look_at(struct live *live, const char *path)
{
	GPC_TEXT(text, 200);
	struct gpc_recording *recording;
	struct live_process *process;

	if (gpc_recording_open(path, &recording, &text) != GPC_OK)
		return;
	process = find_process(live, path);
	if (process)
		read_process(live, process, recording);
	gpc_recording_close(recording);
}

/* Reads the recordings of processes that are alive, and of those that an earlier look found alive. */
static void look_at_folder(struct live *live, const char *folder)
{
	struct gpc_directory directory;

	gpc_directory_open(&directory, folder);
	for (size_t i = 0; i < directory.n_entries; i++) {
		const struct gpc_directory_entry *entry = &directory.entries[i];
		bool is_known = false;

		for (unsigned p = 0; p < live->n_processes; p++)
			is_known |= strcmp(live->processes[p].path, entry->path) == 0;
		if (entry->status == GPC_OK && (is_known || entry->state == GPC_RUN_ALIVE))
			look_at(live, entry->path);
	}
	gpc_directory_close(&directory);
}

/* Reads the recording that a pid or file names; later looks read the recording that the first one found. */
static enum gpc_exit look_at_one(struct live *live)
{
	struct gpc_report found = { .options = live->report->options };
	enum gpc_exit code;

	if (live->n_processes) {
		look_at(live, live->processes[0].path);
		return GPC_EXIT_MADE;
	}
	code = gpc_target_open(&found, GPC_NEEDS_RECORDING);
	if (code == GPC_EXIT_MADE)
		look_at(live, found.recording->path);
	gpc_recording_close(found.recording);
	gpc_directory_close(&found.directory);
	return code;
}

enum gpc_exit live_look(struct live *live)
{
	const char *target = live->report->options->target;
	enum gpc_exit code = GPC_EXIT_MADE;

	live->now_ns = gpc_clock_monotonic_ns();
	for (unsigned p = 0; p < live->n_processes; p++)
		live->processes[p].is_seen = false;
	if (target && !gpc_target_is_folder(target))
		code = look_at_one(live);
	else
		look_at_folder(live, target);
	live_look_at_others(live);
	return code;
}
