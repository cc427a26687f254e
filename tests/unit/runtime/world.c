/* SPDX-License-Identifier: Apache-2.0 */
#define WORLD_ITSELF
#include "world.h"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/context/contexts.h"
#include "runtime/context/endings.h"
#include "runtime/context/reach.h"
#include "runtime/context/streams.h"
#include "runtime/ledger/track.h"
#include "runtime/memory.h"
#include "runtime/process/enter.h"
#include "runtime/process/state.h"

#undef CHECK
#define CHECK(condition) \
	((condition) ? (void)0 : world_fail(unit_at.file, unit_at.line, #condition))

struct world world;
char world_text[16384];

void world_fail(const char *file, int line, const char *condition)
{
	dprintf(2, "%s:%d: %s\n", file, line, condition);
	_exit(99);
}

/* build/<variant>/tests/unit/<folder>/test_<file> -> build/<variant>/simcuda/libcuda.so.1 */
static void *open_driver(void)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 4; i++)
		*strrchr(path, '/') = '\0';
	strcat(path, "/simcuda/libcuda.so.1");
	return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

static void *find(void *library, const char *name)
{
	return dlsym(library, name);
}

static void load(void)
{
	void *library = open_driver();

	CHECK(library);
	CHECK(!gpc_cuda_fns_fill(&world.fns, find, library));
#define WORLD_FUNCTION(name, result, params)                   \
	*(void **)(void *)&world.name = dlsym(library, #name); \
	CHECK(world.name);
	WORLD_FUNCTIONS(WORLD_FUNCTION)
#undef WORLD_FUNCTION
}

#ifdef __SANITIZE_ADDRESS__
/* The leak checker does not scan mmap'ed memory, where the pools are, and would report what they point to. */
static void end_without_leak_check(int status, void *arg)
{
	_exit(status);
}
#endif

/* The child's life; it ends by exit, so that handlers run as in a program. */
static void live(
	const char *gpusim, const char *conf, const char *recording, void (*body)(void), int fd)
{
	dup2(fd, 2);
#ifdef __SANITIZE_ADDRESS__
	CHECK(!on_exit(end_without_leak_check, NULL));
#endif
	setenv("GPUSIM", gpusim ? gpusim : "", 1);
	unsetenv("GPUCACHE");
	if (conf)
		setenv("GPUCACHE_CONF", conf, 1);
	else
		unsetenv("GPUCACHE_CONF");
	setenv("GPUCACHE_OUTPUT", recording, 1);
	load();
	body();
	exit(0);
}

/* Reads the child's whole output; drops what exceeds the buffer. */
static void collect(int fd)
{
	size_t n = 0;
	char more[4096];
	ssize_t got;

	while ((got = read(fd, more, sizeof more)) > 0) {
		size_t room = sizeof world_text - 1 - n;
		size_t take = (size_t)got < room ? (size_t)got : room;

		memcpy(world_text + n, more, take);
		n += take;
	}
	world_text[n] = '\0';
}

void world_run_to(const char *gpusim, const char *conf, void (*body)(void), int status)
{
	char recording[] = "/tmp/gpucache_test_XXXXXX";
	int ends[2];
	int ended;
	pid_t pid;

	at_int_equal(close(mkstemp(recording)), 0);
	at_int_equal(unlink(recording), 0); /* the name is free */
	at_int_equal(pipe(ends), 0);
	fflush(NULL);
	pid = fork();
	at_true(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		live(gpusim, conf, recording, body, ends[1]);
	}
	close(ends[1]);
	collect(ends[0]);
	close(ends[0]);
	at_int_equal(waitpid(pid, &ended, 0), pid);
	unlink(recording); /* however the child ended */
	if (!WIFEXITED(ended) || WEXITSTATUS(ended) != status) {
		print_error(
			"the child ended with 0x%x and said:\n%s\n", (unsigned)ended, world_text);
		at_fail();
	}
}

void world_run(const char *gpusim, const char *conf, void (*body)(void))
{
	world_run_to(gpusim, conf, body, 0);
}

void world_assert_says(const char *part)
{
	if (!strstr(world_text, part)) {
		print_error("'%s' is not in:\n%s\n", part, world_text);
		at_fail();
	}
}

unsigned world_count(const char *part)
{
	unsigned n = 0;

	for (const char *at = world_text; (at = strstr(at, part)); at++)
		n++;
	return n;
}

void world_assert_is_silent(void)
{
	at_string_equal(world_text, "");
}

static void *open_library(const char *name)
{
	return NULL; /* no NVML here */
}

const struct gpc_runtime_loader *world_loader(void)
{
	static const struct gpc_runtime_loader loader = {
		.fns = &world.fns,
		.open = open_library,
		.lookup_in = find,
	};

	world.n_loader++;
	return &loader;
}

bool world_enter(void)
{
	return gpc_runtime_enter(world_loader);
}

void world_init(void)
{
	CHECK(!world.cuInit(0));
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!world.cuCtxSetCurrent(world.context));
}

void world_start(void)
{
	world_init();
	gpc_runtime_saw_start();
	CHECK(world_enter());
	gpc_runtime_primary_retained(world.context, 0);
	gpc_runtime_leave();
}

CUresult world_malloc(CUdeviceptr *ret_ptr, size_t size)
{
	CUresult result;

	if (!world_enter())
		return world.fns.cuMemAlloc_v2(ret_ptr, size);
	result = gpc_runtime_malloc(ret_ptr, size);
	gpc_runtime_leave();
	return result;
}

CUresult world_free(CUdeviceptr ptr)
{
	struct gpc_tracked *tracked;
	CUresult result;
	bool is_ours;

	if (!world_enter())
		return world.fns.cuMemFree_v2(ptr);
	result = gpc_runtime_free(ptr, &is_ours);
	if (!is_ours) {
		tracked = gpc_runtime_forget(ptr);
		result = world.fns.cuMemFree_v2(ptr);
		gpc_runtime_forgotten(tracked, result);
	}
	gpc_runtime_leave();
	return result;
}

CUresult world_info(size_t *available, size_t *total)
{
	CUresult result = world.fns.cuMemGetInfo_v2(available, total);

	if (!result && world_enter()) {
		gpc_runtime_adjust_free(available, total);
		gpc_runtime_leave();
	}
	return result;
}

CUresult world_sync(void)
{
	struct gpc_sync sync;
	CUresult result;

	CHECK(world_enter());
	sync = gpc_runtime_begin_sync(NULL);
	result = world.fns.cuCtxSynchronize();
	gpc_runtime_end_sync(sync, result);
	gpc_runtime_leave();
	return result;
}

CUstream world_stream(void)
{
	CUstream stream = NULL;

	CHECK(!world.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	CHECK(world_enter());
	gpc_runtime_stream_created(stream);
	gpc_runtime_leave();
	return stream;
}

/* cudaDeviceReset, and the first call after it. */
void world_reset(void)
{
	CHECK(world_enter());
	gpc_runtime_primary_begin(0);
	gpc_runtime_begin_reset(0);
	CHECK(gpc_runtime_end_reset(0, world.cuDevicePrimaryCtxReset_v2(0)));
	gpc_runtime_primary_forget(0);
	gpc_runtime_primary_end(0);
	gpc_runtime_leave();
	CHECK(!world.cuDevicePrimaryCtxRetain(&world.context, 0));
	CHECK(!world.cuCtxSetCurrent(world.context));
}

CUresult world_destroy(CUcontext handle)
{
	struct gpc_ending ending;
	CUresult result;

	CHECK(world_enter());
	ending = gpc_runtime_begin_destroy(handle);
	result = world.cuCtxDestroy_v2(handle);
	gpc_runtime_end_destroy(ending, result);
	gpc_runtime_leave();
	return result;
}

CUcontext world_peer(CUdevice device)
{
	CUcontext reaching;

	CHECK(!world.cuCtxCreate_v2(&reaching, 0, device));
	CHECK(world_enter());
	gpc_runtime_peer_enabled(world.context);
	gpc_runtime_leave();
	return reaching;
}

struct gpc_context *world_context(void)
{
	struct gpc_context *context = gpc_context_current();

	CHECK(context);
	return context;
}

struct gpucache_counters world_counters(void)
{
	struct gpucache_counters now = { 0 };

	gpc_counters_add(&now, world_context()->pool.counters);
	return now;
}

const struct gpucache_oom *world_oom(unsigned i)
{
	const struct gpucache_region *region = gpc_runtime.record.regions[GPUCACHE_REGION_OOMS];

	CHECK(region);
	return (const void *)(gpc_runtime.record.base + region->offset + i * region->record_size);
}
