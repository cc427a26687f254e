/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of keys: each row has the kind of its value and its offset in the configuration, or a function that applies
 * the value.  A part that is not understood is reported in one line and ignored.
 */
#include "sim/gpu/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum key_kind {
	KEY_BYTES,  /* a uint64_t: 512MiB */
	KEY_US,     /* a uint64_t of nanoseconds: microseconds, fractions allowed */
	KEY_CHOICE, /* a bool: words[0] is false, words[1] true */
	KEY_FILE,   /* a name in char[GPC_SIM_FILE_BYTES] */
	KEY_OTHER,  /* `apply` parses the value, and sets what it means */
};

struct key {
	const char *name;
	enum key_kind kind;
	size_t at; /* offset in the configuration; not for KEY_OTHER */
	bool (*apply)(struct gpc_sim_config *config, const char *value); /* KEY_OTHER */
	const char *text;
	const char *words[2]; /* KEY_CHOICE */
};

static bool parse_u64(const char *value, uint64_t *ret)
{
	char *end;
	unsigned long long n = strtoull(value, &end, 10);

	if (end == value || *end || *value == '-')
		return false;
	*ret = n;
	return true;
}

static bool apply_devices(struct gpc_sim_config *config, const char *value)
{
	uint64_t n;

	if (!parse_u64(value, &n) || n > GPC_SIM_MAX_DEVICES)
		return false;
	config->n_devices = (unsigned)n;
	return true;
}

/* Sets the model, and with it the memory, the context's cost and the code; later keys may override those. */
static bool apply_gpu(struct gpc_sim_config *config, const char *value)
{
	const struct gpc_sim_model *model = gpc_sim_model_find(value);

	if (!model)
		return false;
	config->model = model;
	config->memory = model->memory;
	config->context_cost = gpc_sim_model_context_bytes(model);
	config->has_code = true;
	return true;
}

static bool apply_driver(struct gpc_sim_config *config, const char *value)
{
	uint64_t n;

	if (!parse_u64(value, &n) || n < 2000 || n > 99990)
		return false;
	config->driver_version = (int)n;
	return true;
}

static bool apply_queue(struct gpc_sim_config *config, const char *value)
{
	return parse_u64(value, &config->queue) && config->queue <= GPC_SIM_MAX_QUEUE;
}

/* Splits `text` at '/' into at most n fields.  Returns their number, or n + 1 if there are more. */
static unsigned split(char *text, char **fields, unsigned n)
{
	unsigned k = 0;

	for (char *save = NULL, *at = strtok_r(text, "/", &save); at;
		at = strtok_r(NULL, "/", &save)) {
		if (k == n)
			return n + 1;
		fields[k++] = at;
	}
	return k;
}

static bool apply_foreign(struct gpc_sim_config *config, const char *value)
{
	char text[128];
	char *field[3];
	uint64_t pid = 4242 + config->n_processes;
	struct gpc_sim_process process = { .name = "other" };

	if (config->n_processes == GPC_SIM_MAX_PROCESSES || strlen(value) >= sizeof text)
		return false;
	snprintf(text, sizeof text, "%s", value);
	unsigned n = split(text, field, 3);
	if (n < 1 || n > 3 || !gpc_bytes_parse(field[0], strlen(field[0]), &process.bytes))
		return false;
	if (n > 1 && !parse_u64(field[1], &pid))
		return false;
	if (n > 2)
		snprintf(process.name, sizeof process.name, "%.63s", field[2]);
	process.pid = (unsigned)pid;
	config->processes[config->n_processes++] = process;
	return true;
}

static bool apply_fail(struct gpc_sim_config *config, const char *value)
{
	char text[128];
	char *field[4];
	uint64_t code = 2;
	struct gpc_sim_fault_rule rule = { .nth = 1, .count = 1 };

	if (config->n_faults == GPC_SIM_MAX_FAULTS || strlen(value) >= sizeof text)
		return false;
	snprintf(text, sizeof text, "%s", value);
	unsigned n = split(text, field, 4);
	if (n < 2 || n > 4 || strlen(field[0]) >= sizeof rule.entry ||
		!parse_u64(field[1], &rule.nth))
		return false;
	if (n > 2 && !parse_u64(field[2], &code))
		return false;
	if (n > 3 && !parse_u64(field[3], &rule.count))
		return false;
	if (rule.nth == 0 || code == 0 || code > 999)
		return false;
	snprintf(rule.entry, sizeof rule.entry, "%s", field[0]);
	rule.code = (int)code;
	config->faults[config->n_faults++] = rule;
	return true;
}

static bool apply_reads(struct gpc_sim_config *config, const char *value)
{
	uint64_t every = strcmp(value, "one") == 0;

	if (strncmp(value, "one/", 4) == 0 && (!parse_u64(value + 4, &every) || !every))
		return false;
	if (!every && strcmp(value, "zero") != 0 && strcmp(value, "garbage") != 0)
		return false;
	config->is_answered = strcmp(value, "garbage") != 0;
	config->one_every = every;
	return true;
}

const uint64_t gpc_sim_published_costs[GPC_SIM_COST_COUNT] = {
	[GPC_SIM_COST_MALLOC] = 35000,     /* cudaMalloc of 1..2 MiB: 33..38 us */
	[GPC_SIM_COST_FREE] = 35000,       /* cudaFree, without its wait for work */
	[GPC_SIM_COST_INFO] = 10000,       /* cudaMemGetInfo: 7..12 us */
	[GPC_SIM_COST_EVENT_CREATE] = 420, /* without timing */
	[GPC_SIM_COST_RECORD] = 244,       /* without timing */
	[GPC_SIM_COST_QUERY] = 1020,       /* cudaEventQuery */
	[GPC_SIM_COST_WAIT] = 254,         /* cudaStreamWaitEvent */
	[GPC_SIM_COST_SYNC] = 5000,        /* an idle cuCtxSynchronize; an estimate */
	[GPC_SIM_COST_LAUNCH] = 2500,      /* the host's part of a launch: 2..3 us */
};

static bool apply_costs(struct gpc_sim_config *config, const char *value)
{
	if (!strcmp(value, "published"))
		memcpy(config->cost_ns, gpc_sim_published_costs, sizeof gpc_sim_published_costs);
	else if (!strcmp(value, "none"))
		memset(config->cost_ns, 0, sizeof config->cost_ns);
	else
		return false;
	return true;
}

static bool apply_help(struct gpc_sim_config *config, const char *value);

#define MEMBER(kind_, key, member, meaning)                                                      \
	{                                                                                        \
		.name = key, .kind = KEY_##kind_, .at = offsetof(struct gpc_sim_config, member), \
		.text = meaning                                                                  \
	}
#define CHOICE(key, member, no, yes, meaning)                                                   \
	{                                                                                       \
		.name = key, .kind = KEY_CHOICE, .at = offsetof(struct gpc_sim_config, member), \
		.words = { no, yes }, .text = meaning                                           \
	}
#define OTHER(key, function, meaning)                                              \
	{                                                                          \
		.name = key, .kind = KEY_OTHER, .apply = function, .text = meaning \
	}

static const struct key keys[] = {
	OTHER("gpu", apply_gpu,
		"a GPU by name, `gpucache-run --sim list` lists them; sets memory, context and "
		"code"),
	MEMBER(BYTES, "memory", memory, "a device's memory, as cuMemGetInfo says (8GiB)"),
	OTHER("devices", apply_devices, "how many devices, 0 to 16 (1)"),
	MEMBER(BYTES, "reserved", reserved,
		"held by the driver beyond that; NVML shows it (256MiB)"),
	MEMBER(BYTES, "context", context_cost, "device memory that a context takes (300MiB)"),
	MEMBER(BYTES, "module", module_cost, "and a module of a context (2MiB)"),
	CHOICE("code", has_code, "none", "measured",
		"measured: PyTorch's kernels, cuBLAS, NCCL ... take what they took on an H100 "
		"(none)"),
	OTHER("foreign", apply_foreign,
		"BYTES[/PID[/NAME]]: another process on every device; may be repeated"),
	OTHER("driver", apply_driver, "the driver's version, 12040 = 12.4 (13000)"),
	CHOICE("clock", virtual_clock, "real", "virtual",
		"real, or virtual: a wait jumps ahead instead of waiting (real)"),
	CHOICE("data", is_data_full, "lazy", "full",
		"lazy: the host keeps no zeros, and data up to keep; full: every byte (lazy)"),
	MEMBER(BYTES, "keep", keep,
		"how much data the host keeps; what is copied beyond is dropped (2GiB)"),
	OTHER("costs", apply_costs, "none, or published: all costs of calls at once (none)"),
	MEMBER(US, "malloc_us", cost_ns[GPC_SIM_COST_MALLOC], "what an allocation costs (0)"),
	MEMBER(US, "free_us", cost_ns[GPC_SIM_COST_FREE], "what a free costs, beyond its wait (0)"),
	MEMBER(BYTES, "free_waits", free_waits,
		"a free of at least so many bytes waits for work (0)"),
	CHOICE("free_waits_for", free_waits_alone, "device", "context",
		"that of the device, or of the memory's context alone (device)"),
	CHOICE("free_async", is_async_free_late, "now", "late",
		"cuMemFreeAsync of memory of cuMemAlloc on an idle stream: now, or late, when the "
		"device is idle (now)"),
	OTHER("queue", apply_queue,
		"work that a stream takes before the host must wait; 0: no end (0)"),
	CHOICE("host_access", is_host_near, "mapped", "direct",
		"mapped, or direct: attributes say that the host reaches device memory (mapped)"),
	CHOICE("managed", is_managed_pinned, "faults", "pinned",
		"faults: the device fetches managed memory on demand; pinned: attributes say that "
		"it cannot (faults)"),
	CHOICE("context_events", is_event_queued, "free", "queued",
		"free, or queued: one of a context takes a place in each stream's queue (free)"),
	MEMBER(US, "info_us", cost_ns[GPC_SIM_COST_INFO], "what cuMemGetInfo costs (0)"),
	MEMBER(US, "event_us", cost_ns[GPC_SIM_COST_EVENT_CREATE], "what cuEventCreate costs (0)"),
	MEMBER(US, "record_us", cost_ns[GPC_SIM_COST_RECORD], "what recording an event costs (0)"),
	MEMBER(US, "query_us", cost_ns[GPC_SIM_COST_QUERY],
		"what querying an event or a stream costs (0)"),
	MEMBER(US, "wait_us", cost_ns[GPC_SIM_COST_WAIT], "what cuStreamWaitEvent costs (0)"),
	MEMBER(US, "sync_us", cost_ns[GPC_SIM_COST_SYNC],
		"what a synchronisation costs, beyond its wait (0)"),
	MEMBER(US, "launch_us", cost_ns[GPC_SIM_COST_LAUNCH],
		"what submitting work costs the host (0)"),
	MEMBER(US, "kernel_us", kernel_ns, "how long a kernel runs on the device (0)"),
	MEMBER(US, "copy_us", copy_ns, "how long a copy or memset runs, at least (0)"),
	MEMBER(US, "copy_us_per_mib", copy_ns_per_mib, "and for each MiB (0)"),
	MEMBER(US, "migrate_us_per_mib", migrate_ns_per_mib,
		"how much longer work runs for each MiB of managed memory that it moves to the "
		"device, or off it to make room (0)"),
	MEMBER(BYTES, "oom_after", oom_after,
		"refuse memory after so many bytes in all; 0: never (0)"),
	OTHER("fail", apply_fail,
		"ENTRY/N[/CODE[/COUNT]]: the N-th call of ENTRY fails with CODE (2); may be "
		"repeated"),
	OTHER("reads", apply_reads,
		"what a program reads where a kernel would have computed a result: garbage (what "
		"is "
		"there), zero, one, or one/N: zero, but one in each N-th read of a line (garbage)"),
	MEMBER(FILE, "launches", launches,
		"FILE: a line for each kernel and copy, with its stream, is appended there"),
	MEMBER(FILE, "calls", calls,
		"FILE: the name of each entry that is called is appended there"),
	OTHER("help", apply_help, "true: print this"),
};

static bool apply_help(struct gpc_sim_config *config, const char *value)
{
	(void)config;
	(void)value;
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		fprintf(stderr, "gpusim: %-16s %s\n", keys[i].name, keys[i].text);
	return true;
}

struct gpc_sim_config gpc_sim_config_default(void)
{
	return (struct gpc_sim_config){
		.n_devices = 1,
		.model = gpc_sim_model_default(),
		.driver_version = 13000,
		.memory = 8 * GPC_GIB,
		.keep = 2 * GPC_GIB,
		.reserved = 256 * GPC_MIB,
		.context_cost = 300 * GPC_MIB,
		.module_cost = 2 * GPC_MIB,
	};
}

static bool parse_us(const char *value, uint64_t *ret_ns)
{
	char *end;
	double us = strtod(value, &end);

	if (end == value || *end || !(us >= 0 && us < 1e12))
		return false;
	*ret_ns = (uint64_t)(us * 1000.0 + 0.5);
	return true;
}

static bool parse_choice(const char *value, const char *const *words, bool *ret_choice)
{
	bool is_second = strcmp(value, words[1]) == 0;

	if (!is_second && strcmp(value, words[0]) != 0)
		return false;
	*ret_choice = is_second;
	return true;
}

static bool parse_file(const char *value, char *ret_name)
{
	if (!*value || strlen(value) >= GPC_SIM_FILE_BYTES)
		return false;
	snprintf(ret_name, GPC_SIM_FILE_BYTES, "%s", value);
	return true;
}

static bool apply(struct gpc_sim_config *config, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		const struct key *key = &keys[i];
		void *at = (char *)config + key->at;

		if (strcmp(key->name, name) != 0)
			continue;
		switch (key->kind) {
		case KEY_BYTES:
			return gpc_bytes_parse(value, strlen(value), at);
		case KEY_US:
			return parse_us(value, at);
		case KEY_CHOICE:
			return parse_choice(value, key->words, at);
		case KEY_FILE:
			return parse_file(value, at);
		case KEY_OTHER:
			return key->apply(config, value);
		}
	}
	return false;
}

unsigned gpc_sim_config_parse(struct gpc_sim_config *config, const char *text)
{
	char *copy = strdup(text);
	unsigned n_bad = 0;

	if (!copy)
		return 1;
	for (char *save = NULL, *part = strtok_r(copy, ",", &save); part;
		part = strtok_r(NULL, ",", &save)) {
		char *colon = strchr(part, ':');
		bool is_good = false;

		if (colon) {
			*colon = '\0';
			is_good = apply(config, part, colon + 1);
			*colon = ':';
		}
		if (!is_good) {
			fprintf(stderr, "gpusim: GPUSIM: '%s' is not understood and ignored\n",
				part);
			n_bad++;
		}
	}
	free(copy);
	return n_bad;
}

void gpc_sim_config_set_visible(struct gpc_sim_config *config, const char *list)
{
	bool is_taken[GPC_SIM_MAX_DEVICES] = { false };
	unsigned n = 0;

	config->n_physical = config->n_devices;
	for (unsigned i = 0; i < config->n_devices; i++)
		config->physical[i] = i;
	/* A choice by UUID is not simulated: all devices remain. */
	if (!list || strncmp(list, "GPU-", 4) == 0 || strncmp(list, "MIG-", 4) == 0)
		return;
	for (;;) {
		char *end;
		unsigned long number = strtoul(list, &end, 10);

		if (end == list || (*end && *end != ',') || number >= config->n_physical ||
			is_taken[number])
			break;
		is_taken[number] = true;
		config->physical[n++] = (unsigned)number;
		if (!*end)
			break;
		list = end + 1;
	}
	config->n_devices = n;
}
