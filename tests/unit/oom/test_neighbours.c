/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include <assert.h>
#include <sys/stat.h>
#include <unistd.h>

#include "oom/neighbours.h"

/* Our few lines of NVML's ABI against the real header, where a CUDA toolkit brings it. */
#if defined(__has_include)
#if __has_include(<nvml.h>)
#include <nvml.h>
#define SAME_MEMBER(ours, our_name, theirs, their_name)                                           \
	static_assert(offsetof(ours, our_name) == offsetof(theirs, their_name) &&                 \
			      sizeof(((ours *)0)->our_name) == sizeof(((theirs *)0)->their_name), \
		#their_name)

static_assert(GPC_NVML_SUCCESS == (int)NVML_SUCCESS, "success");
static_assert(GPC_NVML_INSUFFICIENT_SIZE == (int)NVML_ERROR_INSUFFICIENT_SIZE, "size");
static_assert(GPC_NVML_MEMORY_V2 == nvmlMemory_v2, "version");
static_assert(sizeof(struct gpc_nvml_memory) == sizeof(nvmlMemory_v2_t), "memory");
SAME_MEMBER(struct gpc_nvml_memory, version, nvmlMemory_v2_t, version);
SAME_MEMBER(struct gpc_nvml_memory, total, nvmlMemory_v2_t, total);
SAME_MEMBER(struct gpc_nvml_memory, reserved, nvmlMemory_v2_t, reserved);
SAME_MEMBER(struct gpc_nvml_memory, available, nvmlMemory_v2_t, free);
SAME_MEMBER(struct gpc_nvml_memory, used, nvmlMemory_v2_t, used);
static_assert(sizeof(struct gpc_nvml_process) == sizeof(nvmlProcessInfo_t), "process");
static_assert(sizeof(struct gpc_nvml_process) == sizeof(nvmlProcessInfo_v2_t), "process, _v2");
SAME_MEMBER(struct gpc_nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_MEMBER(struct gpc_nvml_process, used, nvmlProcessInfo_t, usedGpuMemory);
SAME_MEMBER(struct gpc_nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_MEMBER(struct gpc_nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
static_assert(sizeof(nvmlReturn_t) == sizeof(int), "results are ints");
#endif
#endif

static_assert(sizeof(struct gpc_nvml_memory) == (GPC_NVML_MEMORY_V2 & 0xffffff), "size in version");
static_assert(sizeof(struct gpc_nvml_process) == 24, "process");

/* A fake libnvidia-ml.  Every test sets what it says. */
static struct {
	bool installed;
	const char *missing[4]; /* symbols it lacks */
	int init_result;
	int uuid_result;
	int pci_result;
	int index_result;
	int index_of_result;
	int memory_result;
	int processes_result;
	int name_result;
	unsigned long long used;
	unsigned n_processes;
	struct gpc_nvml_process processes[400];
	const char *name;
	unsigned n_names_asked;
	char how[16]; /* the lookup that gave the device */
} fake;

static int fake_init(void)
{
	return fake.init_result;
}

static int give_device(int result, const char *how, struct gpc_nvml_device **device)
{
	if (result != 0)
		return result;
	snprintf(fake.how, sizeof fake.how, "%s", how);
	*device = (struct gpc_nvml_device *)&fake;
	return 0;
}

static int fake_by_uuid(const char *uuid, struct gpc_nvml_device **device)
{
	assert_string_equal(uuid, "GPU-1");
	return give_device(fake.uuid_result, "uuid", device);
}

static int fake_by_pci(const char *bus_id, struct gpc_nvml_device **device)
{
	assert_string_equal(bus_id, "0000:17:00.0");
	return give_device(fake.pci_result, "pci", device);
}

static int fake_by_index(unsigned index, struct gpc_nvml_device **device)
{
	assert_int_equal(index, 3);
	return give_device(fake.index_result, "index", device);
}

static int fake_index_of(struct gpc_nvml_device *device, unsigned *index)
{
	assert_ptr_equal(device, &fake);
	*index = 5;
	return fake.index_of_result;
}

static int fake_memory(struct gpc_nvml_device *device, struct gpc_nvml_memory *memory)
{
	assert_ptr_equal(device, &fake);
	assert_int_equal(memory->version, 0x02000028);
	memory->total = 1000;
	memory->reserved = 30;
	memory->used = fake.used;
	memory->available = 970 - fake.used;
	return fake.memory_result;
}

static int fake_processes(
	struct gpc_nvml_device *device, unsigned *count, struct gpc_nvml_process *infos)
{
	unsigned room = *count;

	assert_ptr_equal(device, &fake);
	*count = fake.n_processes;
	if (fake.processes_result != 0)
		return fake.processes_result;
	if (fake.n_processes > room)
		return GPC_NVML_INSUFFICIENT_SIZE;
	memcpy(infos, fake.processes, fake.n_processes * sizeof infos[0]);
	return 0;
}

static int fake_name(unsigned pid, char *name, unsigned length)
{
	fake.n_names_asked++;
	if (fake.name_result == 0)
		snprintf(name, length, "%s", fake.name);
	return fake.name_result;
}

static void *fake_open(const char *name)
{
	assert_string_equal(name, "libnvidia-ml.so.1");
	return fake.installed ? &fake : NULL;
}

/* The same copy of the representation as in the code under test: ISO C has no such conversion. */
#define ADDRESS_OF(function)                             \
	do {                                             \
		__typeof__(&(function)) f_ = (function); \
		memcpy(&address, &f_, sizeof address);   \
	} while (0)

static void *fake_lookup(void *library, const char *name)
{
	void *address = NULL;

	assert_ptr_equal(library, &fake);
	for (size_t i = 0; i < N_OF(fake.missing); i++) {
		if (fake.missing[i] && strcmp(fake.missing[i], name) == 0)
			return NULL;
	}
	if (strcmp(name, "nvmlInit_v2") == 0)
		ADDRESS_OF(fake_init);
	else if (strcmp(name, "nvmlDeviceGetHandleByUUID") == 0)
		ADDRESS_OF(fake_by_uuid);
	else if (strcmp(name, "nvmlDeviceGetHandleByPciBusId_v2") == 0)
		ADDRESS_OF(fake_by_pci);
	else if (strcmp(name, "nvmlDeviceGetHandleByIndex_v2") == 0)
		ADDRESS_OF(fake_by_index);
	else if (strcmp(name, "nvmlDeviceGetIndex") == 0)
		ADDRESS_OF(fake_index_of);
	else if (strcmp(name, "nvmlDeviceGetMemoryInfo_v2") == 0)
		ADDRESS_OF(fake_memory);
	else if (strcmp(name, "nvmlDeviceGetComputeRunningProcesses_v3") == 0 ||
		 strcmp(name, "nvmlDeviceGetComputeRunningProcesses_v2") == 0)
		ADDRESS_OF(fake_processes);
	else if (strcmp(name, "nvmlSystemGetProcessName") == 0)
		ADDRESS_OF(fake_name);
	return address;
}

static const struct gpc_nvml_loader loader = { .open = fake_open, .lookup_in = fake_lookup };

static struct gpc_nvml nvml;
static struct gpc_neighbours_query query;

static void add_process(unsigned pid, unsigned long long used)
{
	fake.processes[fake.n_processes++] = (struct gpc_nvml_process){ .pid = pid, .used = used };
}

static int start_fresh(void **state)
{
	memset(&fake, 0, sizeof fake);
	fake.installed = true;
	fake.name_result = 1;
	query = (struct gpc_neighbours_query){
		.uuid = "GPU-1",
		.pci_bus_id = "0000:17:00.0",
		.index = 3,
		.own_pid = 4711,
		.proc = "/nowhere",
	};
	return 0;
}

FIXTURE(start_fresh, NULL);

static struct gpc_neighbours ask(void)
{
	struct gpc_neighbours found;

	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_OK);
	gpc_neighbours_ask(&nvml, &query, &found);
	return found;
}

static void assert_nothing_of_processes(const struct gpc_neighbours *found)
{
	assert_true(found->process_bytes == GPUCACHE_UNKNOWN);
	assert_true(found->others_bytes == GPUCACHE_UNKNOWN);
	assert_int_equal(found->n_neighbours, 0);
	assert_int_equal(found->n_other, 0);
}

TEST(without_the_library_everything_is_unknown)
{
	struct gpc_neighbours found;

	fake.installed = false;
	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_NOT_FOUND);
	assert_false(nvml.ready);
	for (int i = 0; i < 2; i++) {
		gpc_neighbours_ask(i ? &nvml : NULL, &query, &found);
		assert_nothing_of_processes(&found);
		assert_true(found.driver_bytes == GPUCACHE_UNKNOWN);
		assert_true(found.nvml_total_bytes == GPUCACHE_UNKNOWN);
	}
}

TEST(a_library_that_does_not_start_or_finds_no_device_is_not_used)
{
	fake.init_result = 9; /* NVML_ERROR_DRIVER_NOT_LOADED */
	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_UNSUPPORTED);
	assert_false(nvml.ready);

	fake.init_result = 0;
	fake.missing[0] = "nvmlInit_v2";
	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_UNSUPPORTED);

	fake.missing[0] = "nvmlDeviceGetHandleByUUID";
	fake.missing[1] = "nvmlDeviceGetHandleByPciBusId_v2";
	fake.missing[2] = "nvmlDeviceGetHandleByIndex_v2";
	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_UNSUPPORTED);
	assert_false(nvml.ready);
}

TEST(the_device_is_found_by_uuid_then_bus_then_index)
{
	ask();
	assert_string_equal(fake.how, "uuid");
	fake.uuid_result = 6; /* NVML_ERROR_NOT_FOUND */
	ask();
	assert_string_equal(fake.how, "pci");
	query.pci_bus_id = "";
	ask();
	assert_string_equal(fake.how, "index");
	query.index = -1;
	fake.how[0] = '\0';
	add_process(4711, 1);
	struct gpc_neighbours found = ask();

	assert_string_equal(fake.how, "");
	assert_nothing_of_processes(&found);
}

TEST(this_process_and_the_others_are_told_apart_biggest_first)
{
	struct gpc_neighbours found;

	add_process(10, 5);
	add_process(4711, 100);
	add_process(11, 50);
	add_process(12, 7);
	add_process(4711, 20); /* a second instance of the GPU */
	found = ask();
	assert_int_equal(found.process_bytes, 120);
	assert_int_equal(found.others_bytes, 62);
	assert_int_equal(found.driver_bytes, 30);
	assert_int_equal(found.nvml_total_bytes, 1000);
	assert_int_equal(found.n_other, 3);
	assert_int_equal(found.n_neighbours, 3);
	assert_int_equal(found.neighbours[0].pid, 11);
	assert_int_equal(found.neighbours[1].pid, 12);
	assert_int_equal(found.neighbours[2].pid, 10);
	assert_string_equal(found.neighbours[0].name, "");
}

TEST(all_ones_mean_unknown_and_not_sixteen_exbibytes)
{
	struct gpc_neighbours found;

	add_process(10, ~0ULL);
	add_process(4711, 100);
	add_process(11, 50);
	found = ask();
	assert_int_equal(found.process_bytes, 100);
	assert_true(found.others_bytes == GPUCACHE_UNKNOWN);
	assert_int_equal(found.neighbours[0].pid, 11);
	assert_int_equal(found.neighbours[1].pid, 10);
	assert_true(found.neighbours[1].bytes == GPUCACHE_UNKNOWN);

	fake.processes[1].used = ~0ULL;
	found = ask();
	assert_true(found.process_bytes == GPUCACHE_UNKNOWN);
}

TEST(where_our_pid_is_not_listed_nothing_is_claimed_of_anybody)
{
	struct gpc_neighbours found;

	add_process(1, 100);
	add_process(2, 50);
	found = ask();
	assert_nothing_of_processes(&found);
	assert_int_equal(found.driver_bytes, 30);
	assert_int_equal(fake.n_names_asked, 0);
}

TEST(errors_leave_only_their_own_part_unknown)
{
	struct gpc_neighbours found;

	add_process(4711, 100);
	fake.memory_result = 3; /* NVML_ERROR_NOT_SUPPORTED */
	found = ask();
	assert_true(found.driver_bytes == GPUCACHE_UNKNOWN);
	assert_int_equal(found.process_bytes, 100);
	assert_int_equal(found.others_bytes, 0);

	fake.memory_result = 0;
	fake.processes_result = 4; /* NVML_ERROR_NO_PERMISSION */
	found = ask();
	assert_int_equal(found.driver_bytes, 30);
	assert_nothing_of_processes(&found);
}

TEST(older_drivers_list_processes_by_the_function_before)
{
	struct gpc_neighbours found;

	add_process(4711, 100);
	fake.missing[0] = "nvmlDeviceGetComputeRunningProcesses_v3";
	found = ask();
	assert_int_equal(found.process_bytes, 100);

	fake.missing[1] = "nvmlDeviceGetComputeRunningProcesses_v2";
	fake.missing[2] = "nvmlDeviceGetMemoryInfo_v2";
	fake.missing[3] = "nvmlSystemGetProcessName";
	found = ask();
	assert_nothing_of_processes(&found);
	assert_true(found.driver_bytes == GPUCACHE_UNKNOWN);
}

TEST(of_200_processes_the_16_biggest_are_kept)
{
	struct gpc_neighbours found;

	for (unsigned i = 0; i < 199; i++)
		add_process(1000 + i, 1 + i * 37 % 199);
	add_process(4711, 5);
	found = ask();
	assert_int_equal(found.n_other, 199);
	assert_int_equal(found.others_bytes, 199 * 200 / 2);
	assert_int_equal(found.n_neighbours, GPUCACHE_MAX_NEIGHBOURS);
	for (unsigned i = 0; i < GPUCACHE_MAX_NEIGHBOURS; i++)
		assert_int_equal(found.neighbours[i].bytes, 199 - i);
}

TEST(more_processes_than_the_buffer_holds_are_not_guessed)
{
	struct gpc_neighbours found;

	add_process(4711, 5);
	for (unsigned i = 0; i < 256; i++)
		add_process(1000 + i, 1);
	found = ask();
	assert_nothing_of_processes(&found);
	assert_int_equal(found.driver_bytes, 30);

	fake.n_processes = 256;
	found = ask();
	assert_int_equal(found.others_bytes, 255);
}

TEST(names_come_from_proc_and_else_from_nvml_without_arguments)
{
	char root[] = "/tmp/gpc-neighbours-XXXXXX";
	char path[128];
	struct gpc_neighbours found;
	FILE *file;

	assert_non_null(mkdtemp(root));
	snprintf(path, sizeof path, "%s/10", root);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof path, "%s/10/comm", root);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("trainer\n", file);
	fclose(file);

	query.proc = root;
	fake.name_result = 0;
	fake.name = "/usr/bin/a-program-with-a-name-longer-than-the-field --password=secret";
	add_process(10, 9);
	add_process(11, 8);
	add_process(4711, 1);
	found = ask();
	assert_string_equal(found.neighbours[0].name, "trainer");
	assert_string_equal(found.neighbours[1].name, "a-program-with-a-name-longer-th");
	assert_int_equal(fake.n_names_asked, 1);

	unlink(path);
	snprintf(path, sizeof path, "%s/10", root);
	rmdir(path);
	rmdir(root);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

TEST(a_process_of_ones_own_is_told_with_its_age)
{
	static const char since_the_boot[] =
		"10 (a) b) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 100 20\n";
	char root[] = "/tmp/gpc-neighbours-XXXXXX";
	char folder[128];
	char path[160];

	assert_non_null(mkdtemp(root));
	snprintf(folder, sizeof folder, "%s/10", root);
	assert_int_equal(mkdir(folder, 0700), 0);
	snprintf(path, sizeof path, "%s/stat", folder);
	query.proc = root;
	add_process(10, 9);
	add_process(11, 8);
	add_process(4711, 1);
	assert_int_equal(ask().neighbours[0].own_age_s, 0); /* no stat */
	write_file(path, since_the_boot);
	assert_true(ask().neighbours[0].own_age_s >= 1);
	assert_int_equal(ask().neighbours[1].own_age_s, 0); /* no folder */
	write_file(path, "10 (a) S 1 2 3\n");
	assert_int_equal(ask().neighbours[0].own_age_s, 0);
	/* Later than now: of another machine, or of another time namespace. */
	write_file(path,
		"10 (a) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 99999999999999999 20\n");
	assert_int_equal(ask().neighbours[0].own_age_s, 0);
	/* Of another user, where the test may make it so. */
	write_file(path, since_the_boot);
	if (chown(folder, geteuid() + 1, (gid_t)-1) == 0)
		assert_int_equal(ask().neighbours[0].own_age_s, 0);

	unlink(path);
	rmdir(folder);
	rmdir(root);
}

TEST(the_number_of_the_gpu_is_nvmls)
{
	assert_int_equal(ask().index, 5);
	fake.index_of_result = 1;
	assert_int_equal(ask().index, -1);
	fake.index_of_result = 0;
	fake.missing[0] = "nvmlDeviceGetIndex";
	assert_int_equal(ask().index, -1);
}

TEST(a_gpu_is_idle_if_others_use_next_to_nothing_and_a_good_part_is_free)
{
	assert_int_equal(gpc_nvml_idle(&(struct gpc_nvml){ 0 }, &query, 0), 0); /* not ready */
	assert_int_equal(gpc_nvml_init(&nvml, &loader), GPC_OK);
	fake.used = 1000 / GPC_IDLE_PART;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, 0), 970 - fake.used);
	fake.used++;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, 0), 0);
	assert_int_equal(
		gpc_nvml_idle(&nvml, &query, 1), 970 - fake.used); /* all but that is our own */
	fake.used = 970 - 1000 / GPC_ROOMY_PART;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, fake.used), 1000 / GPC_ROOMY_PART);
	fake.used++;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, fake.used), 0);
	fake.used = 0;
	fake.memory_result = 3;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, 0), 0);
	fake.memory_result = 0;
	fake.uuid_result = fake.pci_result = fake.index_result = 6;
	assert_int_equal(gpc_nvml_idle(&nvml, &query, 0), 0);
}
