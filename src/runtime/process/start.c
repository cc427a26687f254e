/* SPDX-License-Identifier: Apache-2.0 */
/* The start, at the first CUDA call of the process: configuration, recording, stacks, devices. */
#include "runtime/process/start.h"

#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/thread.h"
#include "gpucache_version.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"
#include "runtime/export/ipc.h"
#include "runtime/ledger/observe.h"
#include "runtime/process/callers.h"
#include "runtime/process/enter.h"
#include "runtime/process/exit.h"
#include "runtime/process/state.h"
#include "runtime/process/tags.h"
#include "runtime/rescue/rescue.h"
#include "runtime/rescue/spill.h"

static void record_line(void *arg, const char *line)
{
	(void)arg;
	(void)gpc_record_append_line(&gpc_runtime.record, line);
}

/* Ends the process if the user asked for the table of options, or made a mistake with strict:true. */
static void read_config(void)
{
	struct gpc_config *config = &gpc_runtime.config;
	static char help[GPC_CONFIG_HELP_SIZE];
	struct gpc_text text = gpc_text_init(help, sizeof help);

	gpc_config_load(config);
	if (config->tensors == GPC_TENSORS_SAMPLED && config->stacks == GPC_STACKS_ALL)
		config->stacks = GPC_STACKS_SAMPLED;
	for (unsigned i = 0; i < config->n_warnings; i++)
		gpc_log("%s", config->warnings[i]);
	if (config->n_more_warnings)
		gpc_log("GPUCACHE_CONF: %u more mistakes are not shown", config->n_more_warnings);
	if (config->checker)
		gpc_log("%s watches this process: the cache is off, so that it sees each "
			"allocation (GPUCACHE_CONF=cache:on keeps it on)",
			config->checker);
	if (config->help) {
		gpc_config_help(&text);
		gpc_log_block(text.buf, text.len);
		_exit(0);
	}
	if (config->is_fatal) {
		gpc_log("GPUCACHE_CONF: strict:true ends the program here; fix the lines above or "
			"leave strict out");
		_exit(2);
	}
}

static bool torch_rounds_up(void)
{
	static const char *const names[] = { "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF" };

	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		const char *conf = gpc_env_get(names[i]);

		if (conf && strstr(conf, "roundup_power2_divisions"))
			return true;
	}
	return false;
}

static void write_config(void)
{
	const struct gpc_config *config = &gpc_runtime.config;
	const char *loading = gpc_env_get("CUDA_MODULE_LOADING");

	gpc_runtime.is_eager = loading && strcmp(loading, "EAGER") == 0;
	gpc_runtime.torch_rounds_up = torch_rounds_up();
	gpc_config_describe(config, record_line, NULL);
	for (unsigned i = 0; i < config->n_warnings; i++) {
		char line[GPC_CONFIG_MAX_WARNING + 16];

		gpc_format(line, sizeof line, "warning: %s", config->warnings[i]);
		record_line(NULL, line);
	}
}

/* Logs a line if the recording is not in its usual place. */
static void say_where(void)
{
	const struct gpc_record *record = &gpc_runtime.record;
	const char *output = gpc_runtime.config.output;

	if (record->pattern_errno)
		gpc_log("GPUCACHE_OUTPUT=%s cannot be used (errno %d); recording to %s instead",
			output, record->pattern_errno, record->path);
	else if (record->default_errno)
		gpc_log("/dev/shm/gpucache-%u cannot be used (errno %d): it must have room, be "
			"yours, and be closed to others; recording to %s instead",
			record->header->uid, record->default_errno, record->path);
	else if (record->is_name_taken)
		gpc_log("GPUCACHE_OUTPUT=%s exists; recording to %s instead", output, record->path);
	else if (record->pattern_error)
		gpc_log("GPUCACHE_OUTPUT: %%%c is not known and stays as it is; known are %%p %%h "
			"%%e %%t %%n %%r %%l %%j %%q{VAR} %%%%",
			record->pattern_error);
}

static void open_record(uint32_t n_devices, int driver_version)
{
	const struct gpc_config *config = &gpc_runtime.config;
	struct gpc_record_params params = {
		.size = config->recording_size,
		.pattern = config->output,
		.version = GPUCACHE_VERSION,
		.n_devices = n_devices,
		.rank = config->rank,
		.driver_version = driver_version,
		.sample_bytes = config->stacks == GPC_STACKS_SAMPLED ? GPC_SAMPLE_BYTES : 0,
		.is_private = !config->record,
	};
	enum gpc_status st = gpc_record_open(&gpc_runtime.record, &params);

	if (!config->record)
		gpc_record_mute(&gpc_runtime.record);
	if (st)
		gpc_log("no recording: %s. The program runs on; gpumem-report will not find it. "
			"Set GPUCACHE_OUTPUT to a place with room for %llu MiB.",
			st == GPC_IO ? "no directory could be used, or it is full"
				     : gpc_status_text(st),
			(unsigned long long)(config->recording_size >> 20));
	else
		say_where();
}

static bool append_to_record(
	void *self, enum gpucache_region_kind region, const void *record, uint32_t size)
{
	return gpc_record_append(self, region, record, size);
}

static void start_stacks(void)
{
	const struct gpc_config *config = &gpc_runtime.config;
	struct gpc_stacks_params params = {
		.sink = { .self = &gpc_runtime.record, .append = append_to_record },
		.lookup_in = gpc_runtime.loader->lookup_in,
		.max_stacks = gpc_runtime.record.n_sites - 1, /* one site each */
		.with_python = config->python,
	};

	if (config->stacks != GPC_STACKS_OFF && gpc_runtime.record.n_sites > 1 &&
		!gpc_stacks_init(&gpc_runtime.stacks, &params))
		gpc_runtime.has_stacks = true;
	else if (config->cache == GPC_CACHE_AUTO || config->spill) /* for callers.c */
		gpc_unwind_init(&gpc_runtime.stacks.unwind, params.lookup_in);
}

/* The limit of this process in bytes: the smaller of `limit` and `per_process_memory_fraction`; 0: none. */
static uint64_t limit_of(const struct gpc_config *config, uint64_t device_bytes)
{
	uint64_t limit = gpc_amount_of(&config->limit, device_bytes);

	if (config->per_process_memory_fraction < 1000000)
		limit = gpc_smaller(
			limit, gpc_fraction_of(config->per_process_memory_fraction, device_bytes));
	return limit == UINT64_MAX ? 0 : limit;
}

static void put_uuid(const CUuuid *uuid, char *buf, size_t size)
{
	const unsigned char *b = (const unsigned char *)uuid->bytes;
	struct gpc_text text = gpc_text_init(buf, size);

	gpc_text_add(&text, "GPU-");
	for (int i = 0; i < 16; i++)
		gpc_text_add(&text, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
}

/* The UUID of a simulated GPU begins with "gpusim" (src/sim/libcuda); a report must not be taken for one of the real GPU. */
static void mark_if_simulated(struct gpucache_device *known)
{
	static const char uuid[] = "GPU-67707573-696d";
	size_t len = strnlen(known->name, sizeof known->name);

	if (strncmp(known->uuid, uuid, strlen(uuid)) == 0 &&
		strncmp(known->name, "Simulated", strlen("Simulated")) != 0)
		gpc_format(known->name + len, sizeof known->name - len, ", simulated");
}

/*
 * 1 + the number that nvidia-smi gives the device, from CUDA_VISIBLE_DEVICES; 0 if that variable names devices by UUID.
 * NVML knows the number, but to load NVML at the start of every process would be too expensive.
 */
static uint32_t physical_of(uint32_t ordinal)
{
	const char *list = gpc_env_get("CUDA_VISIBLE_DEVICES");
	uint32_t number = 0;

	if (!list)
		return ordinal + 1;
	for (; ordinal > 0 && list; ordinal--) {
		list = strchr(list, ',');
		list += list != NULL;
	}
	if (!list || *list < '0' || *list > '9')
		return 0;
	for (; *list >= '0' && *list <= '9' && number < GPC_MAX_DEVICES; list++)
		number = number * 10 + (uint32_t)(*list - '0');
	return *list && *list != ',' ? 0 : number + 1;
}

static void start_device(struct gpc_device *device, uint32_t ordinal)
{
	const struct gpc_cuda_fns *fns = gpc_runtime.fns;
	size_t total = 0;
	CUuuid uuid;

	device->ordinal = ordinal;
	gpc_lock_init(&device->primary_lock, GPC_RANK_PRIMARY);
	if (fns->cuDeviceGetName(
		    device->known.name, (int)sizeof device->known.name, (CUdevice)ordinal))
		device->known.name[0] = '\0';
	if (fns->cuDeviceGetUuid_v2 && !fns->cuDeviceGetUuid_v2(&uuid, (CUdevice)ordinal))
		put_uuid(&uuid, device->known.uuid, sizeof device->known.uuid);
	mark_if_simulated(&device->known);
	if (fns->cuDeviceGetPCIBusId &&
		fns->cuDeviceGetPCIBusId(device->known.pci_bus_id,
			(int)sizeof device->known.pci_bus_id, (CUdevice)ordinal))
		device->known.pci_bus_id[0] = '\0';
	device->known.physical = physical_of(ordinal);
	if (fns->cuDeviceTotalMem_v2(&total, (CUdevice)ordinal))
		total = 0;
	device->known.total_bytes = total;
	device->budget.device_bytes = total;
	device->budget.limit_bytes = limit_of(&gpc_runtime.config, total);
	gpc_record_device(&gpc_runtime.record, ordinal, &device->known);
}

/*
 * Runs in a forked child.  The child shares the recording's descriptor, and with it the file lock by which readers see
 * that the recording process lives.  gpc_record_detach releases both.  CUDA does not survive a fork, so the child
 * passes every call to the driver.
 */
static void detach_child(void)
{
	atomic_store(&gpc_runtime.state, GPC_STATE_PASS);
	gpc_record_detach(&gpc_runtime.record);
	gpc_ipc_end(true);
}

bool gpc_runtime_start(void)
{
	int driver_version = 0;
	int n_devices = 0;

	gpc_runtime.fns = gpc_runtime.loader->fns;
	if (gpc_config_is_off())
		return false;
	if (!gpc_process_adopt()) {
		gpc_log("this kernel cannot tell a forked child from its parent (MADV_WIPEONFORK, "
			"Linux 4.14); every call goes straight to the driver");
		return false;
	}
	if (gpc_runtime.fns->cuDeviceGetCount(&n_devices))
		n_devices = 0;
	if (gpc_runtime.fns->cuDriverGetVersion(&driver_version))
		driver_version = 0;
	if (n_devices > (int)GPC_MAX_DEVICES)
		n_devices = (int)GPC_MAX_DEVICES;
	read_config();
	gpc_report_command_find(gpc_runtime.report_command, sizeof gpc_runtime.report_command);
	if (gpc_heap_init(&gpc_runtime.heap, &gpc_runtime_observer)) {
		gpc_log("no memory for our own tables; every call goes straight to the driver");
		return false;
	}
	gpc_runtime.heap.duties = &gpc_runtime_duties;
	open_record((uint32_t)n_devices, driver_version);
	write_config();
	gpc_runtime_tags_start();
	start_stacks();
	gpc_callers_start();
	gpc_spill_start();
	for (uint32_t i = 0; i < (uint32_t)n_devices; i++)
		start_device(&gpc_runtime.devices[i], i);
	gpc_runtime.n_devices = (uint32_t)n_devices;
	if (n_devices > 1)
		gpc_runtime_context_created();
	/* The driver's own handler was registered in cuInit, so ours runs before it, while the device still answers. */
	(void)on_exit(gpc_runtime_at_exit, NULL);
	(void)at_quick_exit(gpc_runtime_at_exit_without_handlers);
	(void)pthread_atfork(NULL, NULL, detach_child);
	return true;
}
