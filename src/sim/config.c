/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of keys: each row has the offset of its number in the configuration, or a function that parses its value.  A
 * part that is not understood is reported in one line and ignored.
 */
#include "sim/config.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

enum key_kind {
	KEY_BYTES, /* 512MiB */
	KEY_US,    /* microseconds, fractions allowed */
	KEY_OTHER, /* has its own function */
};

struct key {
	const char *name;
	enum key_kind kind;
	size_t at; /* of the uint64_t in the configuration; KEY_BYTES and KEY_US */
	bool (*apply)(struct gpc_sim_config *config, const char *value);
	const char *text;
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

static bool apply_clock(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "real") != 0 && strcmp(value, "virtual") != 0)
		return false;
	config->virtual_clock = *value == 'v';
	return true;
}

static bool apply_code(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "none") != 0 && strcmp(value, "measured") != 0)
		return false;
	config->has_code = *value == 'm';
	return true;
}

static bool apply_data(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "lazy") != 0 && strcmp(value, "full") != 0)
		return false;
	config->is_data_full = *value == 'f';
	return true;
}

static bool apply_free_waits_for(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "device") != 0 && strcmp(value, "context") != 0)
		return false;
	config->free_waits_alone = *value == 'c';
	return true;
}

static bool apply_queue(struct gpc_sim_config *config, const char *value)
{
	return parse_u64(value, &config->queue) && config->queue <= GPC_SIM_MAX_QUEUE;
}

static bool apply_host_access(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "mapped") != 0 && strcmp(value, "direct") != 0)
		return false;
	config->is_host_near = *value == 'd';
	return true;
}

static bool apply_context_events(struct gpc_sim_config *config, const char *value)
{
	if (strcmp(value, "free") != 0 && strcmp(value, "queued") != 0)
		return false;
	config->is_event_queued = *value == 'q';
	return true;
}

static bool apply_file(char *name, size_t room, const char *value)
{
	if (!*value || strlen(value) >= room)
		return false;
	snprintf(name, room, "%s", value);
	return true;
}

static bool apply_launches(struct gpc_sim_config *config, const char *value)
{
	return apply_file(config->launches, sizeof config->launches, value);
}

static bool apply_calls(struct gpc_sim_config *config, const char *value)
{
	return apply_file(config->calls, sizeof config->calls, value);
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

const uint64_t gpc_sim_published_costs[GPC_SIM_COST_COUNT] = {
	[GPC_SIM_COST_MALLOC] = 35000,     /* cudaMalloc of 1..2 MiB: 33..38 us */
	[GPC_SIM_COST_FREE] = 35000,       /* cudaFree, without its wait for work */
	[GPC_SIM_COST_INFO] = 10000,       /* cudaMemGetInfo: 7..12 us */
	[GPC_SIM_COST_EVENT_CREATE] = 420, /* without timing */
	[GPC_SIM_COST_RECORD] = 244,       /* without timing */
	[GPC_SIM_COST_QUERY] = 1020,       /* cudaEventQuery */
	[GPC_SIM_COST_WAIT] = 254,         /* cudaStreamWaitEvent */
	[GPC_SIM_COST_SYNC] = 5000,        /* an idle cuCtxSynchronize; an estimate */
	[GPC_SIM_COST_LAUNCH] = 2500,      /* a launch, host side; the usual 2..3 us */
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

#define AT(member) offsetof(struct gpc_sim_config, member)
#define COST(what) (AT(cost_ns) + sizeof(uint64_t) * GPC_SIM_COST_##what)

static const struct key keys[] = {
	{ "gpu", KEY_OTHER, 0, apply_gpu,
		"a GPU by name, `gpucache-run --sim list` lists them; sets memory, context and "
		"code" },
	{ "memory", KEY_BYTES, AT(memory), NULL, "a device's memory, as cuMemGetInfo says (8GiB)" },
	{ "devices", KEY_OTHER, 0, apply_devices, "how many devices, 0 to 16 (1)" },
	{ "reserved", KEY_BYTES, AT(reserved), NULL,
		"held by the driver beyond that; NVML shows it (256MiB)" },
	{ "context", KEY_BYTES, AT(context_cost), NULL,
		"device memory that a context takes (300MiB)" },
	{ "module", KEY_BYTES, AT(module_cost), NULL, "and a module of a context (2MiB)" },
	{ "code", KEY_OTHER, 0, apply_code,
		"measured: PyTorch's kernels, cuBLAS, NCCL ... take what they took on an H100 "
		"(none)" },
	{ "foreign", KEY_OTHER, 0, apply_foreign,
		"BYTES[/PID[/NAME]]: another process on every device; may be repeated" },
	{ "driver", KEY_OTHER, 0, apply_driver, "the driver's version, 12040 = 12.4 (13000)" },
	{ "clock", KEY_OTHER, 0, apply_clock,
		"real, or virtual: a wait jumps ahead instead of waiting (real)" },
	{ "data", KEY_OTHER, 0, apply_data,
		"lazy: the host keeps no zeros, and data up to keep; full: every byte (lazy)" },
	{ "keep", KEY_BYTES, AT(keep), NULL,
		"how much data the host keeps; what is copied beyond is dropped (2GiB)" },
	{ "costs", KEY_OTHER, 0, apply_costs,
		"none, or published: all costs of calls at once (none)" },
	{ "malloc_us", KEY_US, COST(MALLOC), NULL, "what an allocation costs (0)" },
	{ "free_us", KEY_US, COST(FREE), NULL, "what a free costs, beyond its wait (0)" },
	{ "free_waits", KEY_BYTES, AT(free_waits), NULL,
		"a free of at least so many bytes waits for work (0)" },
	{ "free_waits_for", KEY_OTHER, 0, apply_free_waits_for,
		"that of the device, or of the memory's context alone (device)" },
	{ "queue", KEY_OTHER, 0, apply_queue,
		"work that a stream takes before the host must wait; 0: no end (0)" },
	{ "host_access", KEY_OTHER, 0, apply_host_access,
		"mapped, or direct: attributes say that the host reaches device memory (mapped)" },
	{ "context_events", KEY_OTHER, 0, apply_context_events,
		"free, or queued: one of a context takes a place in each stream's queue (free)" },
	{ "info_us", KEY_US, COST(INFO), NULL, "what cuMemGetInfo costs (0)" },
	{ "event_us", KEY_US, COST(EVENT_CREATE), NULL, "what cuEventCreate costs (0)" },
	{ "record_us", KEY_US, COST(RECORD), NULL, "what recording an event costs (0)" },
	{ "query_us", KEY_US, COST(QUERY), NULL, "what querying an event or a stream costs (0)" },
	{ "wait_us", KEY_US, COST(WAIT), NULL, "what cuStreamWaitEvent costs (0)" },
	{ "sync_us", KEY_US, COST(SYNC), NULL,
		"what a synchronisation costs, beyond its wait (0)" },
	{ "launch_us", KEY_US, COST(LAUNCH), NULL, "what submitting work costs the host (0)" },
	{ "kernel_us", KEY_US, AT(kernel_ns), NULL, "how long a kernel runs on the device (0)" },
	{ "copy_us", KEY_US, AT(copy_ns), NULL, "how long a copy or memset runs, at least (0)" },
	{ "copy_us_per_mib", KEY_US, AT(copy_ns_per_mib), NULL, "and for each MiB (0)" },
	{ "oom_after", KEY_BYTES, AT(oom_after), NULL,
		"refuse memory after so many bytes in all; 0: never (0)" },
	{ "fail", KEY_OTHER, 0, apply_fail,
		"ENTRY/N[/CODE[/COUNT]]: the N-th call of ENTRY fails with CODE (2); may be "
		"repeated" },
	{ "launches", KEY_OTHER, 0, apply_launches,
		"FILE: a line for each kernel and copy, with its stream, is appended there" },
	{ "calls", KEY_OTHER, 0, apply_calls,
		"FILE: the name of each entry that is called is appended there" },
	{ "help", KEY_OTHER, 0, apply_help, "true: print this" },
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

static bool apply(struct gpc_sim_config *config, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		const struct key *key = &keys[i];
		uint64_t *at = (uint64_t *)(void *)((char *)config + key->at);

		if (strcmp(key->name, name) != 0)
			continue;
		switch (key->kind) {
		case KEY_BYTES:
			return gpc_bytes_parse(value, strlen(value), at);
		case KEY_US: {
			char *end;
			double us = strtod(value, &end);
			if (end == value || *end || !(us >= 0 && us < 1e12))
				return false;
			*at = (uint64_t)(us * 1000.0 + 0.5);
			return true;
		}
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

void gpc_sim_config_show(struct gpc_sim_config *config, const char *list)
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
