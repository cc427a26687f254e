/* SPDX-License-Identifier: Apache-2.0 */
/* One reading of `live` as JSON. */
#include "tools/gpumem-report/json.h"
#include "tools/gpumem-report/live.h"

static void add_rate(struct json_object *object, const char *key, double rate)
{
	json_object_object_add(object, key, rate >= 0 ? json_object_new_double(rate) : NULL);
}

static struct json_object *others_json(const struct live_others *others)
{
	struct json_object *array = others ? json_object_new_array() : NULL;

	for (unsigned i = 0; others && i < others->n; i++) {
		struct json_object *row = gpc_json_row(array);

		gpc_json_bytes(row, "pid", others->rows[i].pid);
		gpc_json_text(row, "name", others->rows[i].name);
		gpc_json_bytes(row, "bytes", others->rows[i].bytes);
	}
	return array;
}

static struct json_object *gpu_json(const struct live *live, const struct live_gpu *gpu)
{
	struct json_object *object = json_object_new_object();
	struct json_object *holders = json_object_new_array();

	json_object_object_add(object, "ordinal", json_object_new_int(gpu->ordinal));
	gpc_json_text(object, "name", gpu->name);
	gpc_json_text(object, "uuid", gpu->uuid);
	json_object_object_add(object, "balance",
		gpu->has_balance ? gpc_json_balance(&gpu->balance, gpu->sum.kind_bytes) : NULL);
	gpc_json_bytes(object, "live_bytes", live_in_use(gpu));
	gpc_json_bytes(object, "pending_bytes", gpu->sum.pending_bytes);
	gpc_json_bytes(object, "cached_bytes", gpu->sum.cached_bytes);
	gpc_json_bytes(object, "peak_live_bytes", gpu->sum.peak_live_bytes);
	gpc_json_bytes(object, "calls", gpu->n_calls);
	gpc_json_bytes(object, "waits", gpu->sum.n_sync);
	gpc_json_bytes(object, "oom", gpu->sum.n_oom);
	add_rate(object, "growth_bytes_per_second", gpu->growth_a_s);
	add_rate(object, "seconds_left", gpu->seconds_left);
	for (unsigned i = 0; i < gpu->n_holders; i++) {
		struct json_object *row = gpc_json_row(holders);

		gpc_json_text(row, "where", gpu->holders[i].where);
		gpc_json_bytes(row, "live_bytes", gpu->holders[i].bytes);
		gpc_json_bytes(row, "blocks", gpu->holders[i].n_blocks);
	}
	json_object_object_add(object, "holders", holders);
	json_object_object_add(object, "other_processes", others_json(live_find_others(live, gpu)));
	return object;
}

struct json_object *live_json(const struct live *live)
{
	struct json_object *root = gpc_json_begin(live->report, "live");
	struct json_object *processes = json_object_new_array();

	for (unsigned p = 0; p < live->n_processes; p++) {
		const struct live_process *process = &live->processes[p];
		struct json_object *object = gpc_json_identity(
			process->path, &process->header, process->state, process->header.file_size);
		struct json_object *gpus = json_object_new_array();

		for (unsigned g = 0; g < process->n_gpus; g++)
			json_object_array_add(gpus, gpu_json(live, &process->gpus[g]));
		json_object_object_add(object, "devices", gpus);
		json_object_array_add(processes, object);
	}
	json_object_object_add(root, "processes", processes);
	return root;
}
