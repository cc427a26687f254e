/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Injected faults: a short list of rules that say which call is to fail, each with a counter of the calls that matched.
 * Every call of an entry point walks the list, which is usually empty.
 */
#include "sim/gpu/fault.h"

#include <stdio.h>
#include <string.h>

void gpc_sim_faults_init(struct gpc_sim_faults *faults, const struct gpc_sim_config *config)
{
	memset(faults, 0, sizeof *faults);
	pthread_mutex_init(&faults->lock, NULL);
	memcpy(faults->rules, config->faults, sizeof config->faults);
	atomic_init(&faults->n_rules, config->n_faults);
}

bool gpc_sim_fault_add(
	struct gpc_sim_faults *faults, const char *entry, uint64_t nth, uint64_t count, int code)
{
	bool has_room;

	pthread_mutex_lock(&faults->lock);
	unsigned n = atomic_load(&faults->n_rules);
	has_room = n < GPC_SIM_MAX_FAULTS;
	if (has_room) {
		struct gpc_sim_fault_rule *rule = &faults->rules[n];
		snprintf(rule->entry, sizeof rule->entry, "%s", entry);
		rule->nth = nth;
		rule->count = count;
		rule->code = code;
		faults->n_seen[n] = 0;
		atomic_store(&faults->n_rules, n + 1);
	}
	pthread_mutex_unlock(&faults->lock);
	return has_room;
}

void gpc_sim_fault_clear(struct gpc_sim_faults *faults)
{
	pthread_mutex_lock(&faults->lock);
	atomic_store(&faults->n_rules, 0);
	pthread_mutex_unlock(&faults->lock);
}

/* "cuMemAlloc" matches cuMemAlloc_v2 and cuMemAlloc_v2_ptsz, but not cuMemAllocPitch_v2. */
static bool is_match(const char *rule, const char *entry)
{
	size_t len = strlen(rule);

	if (!strcmp(rule, "*"))
		return true;
	return !strncmp(rule, entry, len) &&
	       (entry[len] == '\0' || !strncmp(entry + len, "_v", 2) ||
		       !strncmp(entry + len, "_pt", 3));
}

CUresult gpc_sim_fault_check(struct gpc_sim_faults *faults, const char *entry)
{
	CUresult res = CUDA_SUCCESS;

	if (atomic_load_explicit(&faults->n_rules, memory_order_relaxed) == 0)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&faults->lock);
	unsigned n = atomic_load(&faults->n_rules);
	for (unsigned i = 0; i < n; i++) {
		const struct gpc_sim_fault_rule *rule = &faults->rules[i];
		if (!is_match(rule->entry, entry))
			continue;
		uint64_t call = ++faults->n_seen[i];
		if (call >= rule->nth && call - rule->nth < rule->count)
			res = (CUresult)rule->code;
	}
	pthread_mutex_unlock(&faults->lock);
	return res;
}
