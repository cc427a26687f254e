/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lookups of preload/, from a program's view: this executable runs itself under LD_PRELOAD with the simulated
 * driver, in one of the modes of `modes` below, and checks the output of that child.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver/cuda_abi.h"
#include "unit.h"

#define DRIVER "libcuda.so.1"

#define CHECK(condition)                                                           \
	do {                                                                       \
		if (!(condition)) {                                                \
			dprintf(2, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			_exit(99);                                                 \
		}                                                                  \
	} while (0)

typedef CUresult (*proc_v1)(const char *, void **, int, cuuint64_t);
typedef CUresult (*proc_v2)(
	const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *);

/* A looked up function as what the caller knows it to be. */
#define AS(type, pointer) (*(__typeof__(type) *)(void *)&(void *){ pointer })

/* The object that a pointer lies in, or "" for NULL. */
static const char *object_of(const void *pointer)
{
	Dl_info info;

	if (!pointer || !dladdr(pointer, &info))
		return "";
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

static int is_ours(const void *pointer)
{
	return strcmp(object_of(pointer), "libgpucache.so") == 0;
}

/* ---- modes of the child ---- */

static void mode_nothing(void)
{
	CHECK(dlsym(RTLD_DEFAULT, "malloc") && !dlsym(RTLD_DEFAULT, "cudnnCreate"));
}

static void mode_absent(void)
{
	static const char *const names[] = { "cuInit", "cuMemAlloc_v2", "cuGetProcAddress",
		"cuGetProcAddress_v2", "cuStreamCreate" };
	void *self = dlopen(NULL, RTLD_NOW);

	for (size_t i = 0; i < N_OF(names); i++) {
		(void)dlerror();
		CHECK(!dlsym(RTLD_DEFAULT, names[i]));
		CHECK(dlerror());
		CHECK(!dlsym(self, names[i]));
	}
}

/* What is not ours is found where it is found without us. */
static void mode_foreign(void)
{
	static const char *const names[] = { "cudnnCreate", "cublasCreate_v2", "cudaMalloc", "cu",
		"cuDeviceGet", "cuGetErrorName", "cuda", "c", "", "malloc", "dlopen", "dlerror",
		"cuMemAlloc", "cuMemAlloc_v3", "cuInit_v2" };
	void *handles[] = { RTLD_DEFAULT, RTLD_NEXT, dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL),
		dlopen("libc.so.6", RTLD_NOW) };

	for (size_t h = 0; h < N_OF(handles); h++) {
		for (size_t i = 0; i < N_OF(names); i++) {
			char *found = dlsym(handles[h], names[i]);
			Dl_info info = { 0 };

			if (found)
				dladdr(found, &info);
			printf("%zu %s %s %td\n", h, names[i], object_of(found),
				found ? found - (char *)info.dli_fbase : 0);
		}
	}
}

static void mode_null_name(void)
{
	static const char *volatile no_name;

	printf("%p\n", dlsym(RTLD_DEFAULT, no_name));
}

static void mode_handle(void)
{
	void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	void *init;

	CHECK(driver);
	(void)dlerror();
	init = dlsym(driver, "cuInit");
	CHECK(is_ours(init));
	CHECK(!dlerror()); /* our own lookups leave no error behind */
	CHECK(!dlsym(driver, "cuNothingOfTheKind") && dlerror());
	CHECK(is_ours(dlsym(driver, "cuMemFree_v2")));
	CHECK(strcmp(object_of(dlsym(driver, "cuMemFree")), DRIVER) == 0); /* 32 bit: not ours */
	CHECK(dlopen(DRIVER, RTLD_NOW | RTLD_GLOBAL));
	CHECK(dlsym(RTLD_DEFAULT, "cuInit") == init);
}

static void *proc_address(void)
{
	void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);

	CHECK(driver);
	return dlsym(driver, "cuGetProcAddress_v2");
}

static void mode_proc(void)
{
	const proc_v2 get = AS(proc_v2, proc_address());
	CUdriverProcAddressQueryResult status = 77;
	void *v1 = NULL;
	void *pointer = (void *)&status;

	/* The probe of the runtime library: an empty name, no version, no status. */
	CHECK(get("", &pointer, 0, 0, NULL) != CUDA_SUCCESS);
	CHECK(get("", NULL, 0, 0, NULL) != CUDA_SUCCESS);
	CHECK(get(NULL, &pointer, 12000, 0, NULL) != CUDA_SUCCESS);
	CHECK(get("cuInit", NULL, 12000, 0, NULL) != CUDA_SUCCESS);
	CHECK(get("cuNothing", &pointer, 12000, 0, &status) != CUDA_SUCCESS && status == 1);
	CHECK(get("cuMemAlloc", &pointer, 12000, 64, NULL) == CUDA_ERROR_INVALID_VALUE);
	CHECK(!get("cuMemAlloc", &pointer, 99999, 0, &status) && is_ours(pointer) && status == 0);
	CHECK(!get("cuMemAlloc", &pointer, 2000, 0, NULL) && !is_ours(pointer));
	CHECK(get("cuMemAlloc", &pointer, 1, 0, NULL) != CUDA_SUCCESS);
	CHECK(!get("cuDeviceGet", &pointer, 12000, 0, NULL) && !is_ours(pointer));
	/* The door itself, in the version that was asked for. */
	CHECK(!get("cuGetProcAddress", &v1, 11030, 0, NULL) && is_ours(v1));
	CHECK(!get("cuGetProcAddress", &pointer, 12000, 0, NULL));
	CHECK(pointer == AS(void *, (void *)get) && pointer != v1);
	CHECK(!AS(proc_v1, v1)("cuMemAlloc", &pointer, 12000, 0) && is_ours(pointer));
	CHECK(AS(proc_v1, v1)("", &pointer, 0, 0) != CUDA_SUCCESS);
	CHECK(AS(proc_v1, v1)("", NULL, 0, 0) != CUDA_SUCCESS);
}

static void mode_flags(void)
{
	const proc_v2 get = AS(proc_v2, proc_address());
	void *plain = NULL;
	void *legacy = NULL;
	void *per_thread = NULL;
	Dl_info info;

	CHECK(!get("cuMemcpyAsync", &plain, 12000, 0, NULL));
	CHECK(!get("cuMemcpyAsync", &legacy, 12000, 1, NULL));
	CHECK(!get("cuMemcpyAsync", &per_thread, 12000, 2, NULL));
	CHECK(plain == legacy && plain != per_thread);
	CHECK(dladdr(per_thread, &info) && strcmp(info.dli_sname, "cuMemcpyAsync_ptsz") == 0);
	CHECK(is_ours(plain) && is_ours(per_thread));
}

struct row {
	const char *name;
	int since;
};

static const struct row rows[] = {
#define HOOK(row_name, row_since, ...) { #row_name, row_since },
#include "preload/symbols.def"
};

static int cut(char *name, const char *end)
{
	size_t n = strlen(name);

	if (n <= strlen(end) || strcmp(name + n - strlen(end), end) != 0)
		return 0;
	name[n - strlen(end)] = '\0';
	return 1;
}

/* Each row, asked for by its base name and version, is our function of exactly that name. */
static void mode_rows(void)
{
	const proc_v2 get = AS(proc_v2, proc_address());
	void *driver = dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL);
	unsigned n_asked = 0;

	for (size_t i = 0; i < N_OF(rows); i++) {
		void *exported = dlsym(driver, rows[i].name);
		void *pointer = NULL;
		char base[64];
		int per_thread;
		Dl_info info;

		if (!exported)
			continue; /* this driver lacks it */
		CHECK(is_ours(exported) && dladdr(exported, &info));
		CHECK(strcmp(info.dli_sname, rows[i].name) == 0);
		snprintf(base, sizeof base, "%s", rows[i].name);
		per_thread = cut(base, "_ptsz") + cut(base, "_ptds");
		(void)(cut(base, "_v2") || cut(base, "_v3") || cut(base, "_v4"));
		CHECK(!get(base, &pointer, rows[i].since, per_thread ? 2 : 0, NULL));
		if (pointer != exported)
			dprintf(2, "%s is %s\n", rows[i].name, object_of(pointer));
		CHECK(pointer == exported);
		n_asked++;
	}
	CHECK(n_asked > 60);
}

/* The function that the door of the runtime library gives. */
static void *get_proc(const char *name, cuuint64_t flags)
{
	void *pointer = NULL;

	CHECK(!AS(proc_v2, proc_address())(name, &pointer, 12000, flags, NULL));
	return pointer;
}

static void start(void)
{
	CUcontext context;

	CHECK(!AS(CUresult(*)(unsigned), get_proc("cuInit", 0))(0));
	CHECK(!AS(CUresult(*)(CUcontext *, CUdevice), get_proc("cuDevicePrimaryCtxRetain", 0))(
		&context, 0));
	CHECK(!AS(CUresult(*)(CUcontext), get_proc("cuCtxSetCurrent", 0))(context));
}

static CUdeviceptr give(size_t size)
{
	CUdeviceptr ptr = 0;

	CHECK(!AS(CUresult(*)(CUdeviceptr *, size_t), get_proc("cuMemAlloc", 0))(&ptr, size));
	return ptr;
}

static void mode_life(void)
{
	CUresult (*free_async)(CUdeviceptr, CUstream);
	CUdeviceptr a;

	start();
	a = give(512);
	CHECK(give(512) == a + 512);
	free_async = AS(CUresult(*)(CUdeviceptr, CUstream), get_proc("cuMemFreeAsync", 0));
	CHECK(!free_async(a, NULL));
	CHECK(free_async(a, NULL) == CUDA_ERROR_INVALID_VALUE);
	CHECK(give(512) == a);
	CHECK(access(getenv("GPUCACHE_OUTPUT"), R_OK) == 0);
}

/* The first use of a per-thread default stream is a capture: the wait that the use needs must come before it. */
static void mode_capture(void)
{
	CUresult (*begin)(CUstream, CUstreamCaptureMode);
	CUresult (*fill)(CUdeviceptr, unsigned char, size_t, CUstream);
	CUresult (*end)(CUstream, CUgraph *);
	CUgraph graph = NULL;
	CUdeviceptr a;

	start();
	a = give(4096);
	begin = AS(__typeof__(begin), get_proc("cuStreamBeginCapture", 2));
	fill = AS(__typeof__(fill), get_proc("cuMemsetD8Async", 2));
	end = AS(__typeof__(end), get_proc("cuStreamEndCapture", 2));
	CHECK(!begin(NULL, CU_STREAM_CAPTURE_MODE_GLOBAL));
	CHECK(!fill(a, 1, 4096, NULL));
	CHECK(!AS(CUresult(*)(CUdeviceptr), get_proc("cuMemFree", 0))(a));
	CHECK(!end(NULL, &graph) && graph);
}

/* Libraries that ask for what comes behind them; see next_source. */
static void mode_next(void)
{
	void *(*next)(const char *) = AS(void *(*)(const char *), dlsym(RTLD_DEFAULT, "test_next"));

	CHECK(next && next("malloc") && !next("test_next"));
	CHECK(dlopen(DRIVER, RTLD_NOW | RTLD_LOCAL));
	CHECK(is_ours(next("cuMemFree_v2"))); /* not its own, which would never end */
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{ "nothing", mode_nothing },
	{ "absent", mode_absent },
	{ "foreign", mode_foreign },
	{ "null_name", mode_null_name },
	{ "handle", mode_handle },
	{ "proc", mode_proc },
	{ "flags", mode_flags },
	{ "rows", mode_rows },
	{ "life", mode_life },
	{ "capture", mode_capture },
	{ "next", mode_next },
};

/* ---- the parent ---- */

static char build[4096]; /* build/<variant> */
static char folder[] = "/tmp/gpucache_resolve_XXXXXX";
static char text[65536]; /* what the last child printed */

static void become(const char *mode, const char *preload)
{
	char value[8192];

	snprintf(value, sizeof value, "%s/simcuda", build);
	setenv("LD_LIBRARY_PATH", value, 1);
	if (preload)
		setenv("LD_PRELOAD", preload, 1);
	snprintf(value, sizeof value, "%s/recording", folder);
	setenv("GPUCACHE_OUTPUT", value, 1);
	unsetenv("GPUCACHE");
	unsetenv("GPUCACHE_CONF");
	unsetenv("GPUSIM");
	execl("/proc/self/exe", "test_resolve", mode, (char *)NULL);
	_exit(98);
}

static int run(const char *mode, const char *preload)
{
	size_t n = 0;
	ssize_t got;
	int ends[2];
	int status;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		dup2(ends[1], 1);
		dup2(ends[1], 2);
		close(ends[0]);
		become(mode, preload);
	}
	close(ends[1]);
	while (n < sizeof text - 1 && (got = read(ends[0], text + n, sizeof text - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* libgpucache.so, and behind it what else is to be preloaded. */
static const char *library(const char *more)
{
	static char value[8300];

	snprintf(value, sizeof value, "%s/libgpucache.so%s%s", build, more ? " " : "",
		more ? more : "");
	return value;
}

static unsigned n_files(void)
{
	DIR *dir = opendir(folder);
	unsigned n = 0;

	assert_non_null(dir);
	for (struct dirent *entry; (entry = readdir(dir));)
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

static void remove_file(const char *name)
{
	char path[64];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	(void)unlink(path);
}

static void assert_runs(const char *mode, const char *preload)
{
	int status = run(mode, preload);

	remove_file("recording");
	if (status != 0 || text[0] != '\0') {
		print_error("%s: ended with 0x%x and said:\n%s\n", mode, (unsigned)status, text);
		fail();
	}
}

TEST(every_row_has_a_name_that_dlsym_looks_at)
{
	for (size_t i = 0; i < N_OF(rows); i++) {
		assert_memory_equal(rows[i].name, "cu", 2);
		assert_in_range(rows[i].name[2], 'A', 'Z');
		assert_in_range(rows[i].since, 2000, 13000);
	}
}

/* A sanitizer's runtime wants to be the first library, and finds its own dlsym: without these tests there. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_PRELOADED(name) __attribute__((unused)) static void name(void **state)
#else
#define TEST_PRELOADED(name) TEST(name)
#endif

TEST_PRELOADED(a_program_without_cuda_sees_nothing_of_us)
{
	assert_int_equal(run("nothing", library(NULL)), 0);
	assert_string_equal(text, "");
	assert_int_equal(n_files(), 0);
}

TEST_PRELOADED(without_a_driver_our_names_do_not_pretend)
{
	assert_runs("absent", library(NULL));
	assert_int_equal(n_files(), 0);
}

TEST_PRELOADED(names_that_are_not_ours_are_found_as_without_us)
{
	static char without[sizeof text];

	assert_int_equal(run("foreign", NULL), 0);
	memcpy(without, text, sizeof text);
	assert_non_null(strstr(without, "2 cuDeviceGet libcuda.so.1"));
	assert_int_equal(run("foreign", library(NULL)), 0);
	assert_string_equal(text, without);
}

TEST_PRELOADED(no_name_ends_as_without_us)
{
	int without;

	without = run("null_name", NULL);
	assert_int_equal(run("null_name", library(NULL)), without);
}

TEST_PRELOADED(dlsym_gives_ours_and_leaves_no_error)
{
	assert_runs("handle", library(NULL));
}

TEST_PRELOADED(get_proc_address_answers_as_the_driver_with_our_functions)
{
	assert_runs("proc", library(NULL));
}

TEST_PRELOADED(the_per_thread_flag_is_kept)
{
	assert_runs("flags", library(NULL));
}

TEST_PRELOADED(every_row_is_found_by_its_base_name_and_version)
{
	assert_runs("rows", library(NULL));
}

TEST_PRELOADED(a_program_that_uses_cuda_is_cached_and_recorded)
{
	assert_runs("life", library(NULL));
}

TEST_PRELOADED(a_capture_on_the_per_thread_stream_is_not_broken)
{
	assert_runs("capture", library(NULL));
}

/* Builds a file of this folder from C text; false if there is no compiler. */
static bool compile(const char *name, const char *source, const char *options)
{
	char command[16384];
	char path[64];
	FILE *file;
	int status;

	snprintf(path, sizeof path, "%s/%s.c", folder, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(source, file);
	fclose(file);
	snprintf(command, sizeof command, "cc -o %s/%s %s %s >/dev/null 2>&1", folder, name, path,
		options);
	status = system(command);
	unlink(path);
	return status == 0;
}

static const char next_source[] =
	"#define _GNU_SOURCE\n"
	"#include <dlfcn.h>\n"
	"void *test_next(const char *name) { return dlsym(RTLD_NEXT, name); }\n"
	"int cuMemFree_v2(unsigned long long p) { (void)p; return 999; }\n";

TEST_PRELOADED(a_library_behind_us_does_not_find_itself)
{
	char path[64];

	if (!compile("libnext.so", next_source, "-shared -fPIC -ldl"))
		skip();
	snprintf(path, sizeof path, "%s/libnext.so", folder);
	assert_runs("next", library(path));
	remove_file("libnext.so");
}

static const char link_source[] =
	"extern int cuInit(unsigned), cuDevicePrimaryCtxRetain(void **, int), cuCtxSetCurrent(void "
	"*);\n"
	"extern int cuMemAlloc_v2(unsigned long long *, unsigned long), cuMemFree_v2(unsigned long "
	"long);\n"
	"int main(void) {\n"
	"	unsigned long long a, b; void *c;\n"
	"	if (cuInit(0) || cuDevicePrimaryCtxRetain(&c, 0) || cuCtxSetCurrent(c)) return 1;\n"
	"	if (cuMemAlloc_v2(&a, 512) || cuMemAlloc_v2(&b, 512) || b != a + 512) return 2;\n"
	"	return cuMemFree_v2(a) || cuMemFree_v2(b) ? 3 : 0;\n"
	"}\n";

TEST_PRELOADED(a_program_that_links_the_driver_gets_ours)
{
	char command[16384];

	snprintf(command, sizeof command, "-L%s/simcuda -Wl,--allow-shlib-undefined -l:%s", build,
		DRIVER);
	if (!compile("linked", link_source, command))
		skip();
	snprintf(command, sizeof command,
		"LD_PRELOAD=%s LD_LIBRARY_PATH=%s/simcuda GPUCACHE_OUTPUT=%s/recording %s/linked",
		library(NULL), build, folder, folder);
	assert_int_equal(system(command), 0);
	assert_int_equal(n_files(), 2); /* the program, and its recording */
	remove_file("recording");
	remove_file("linked");
}

static int make_folder(void **state)
{
	ssize_t n = readlink("/proc/self/exe", build, sizeof build - 1);

	if (n <= 0 || !mkdtemp(folder))
		return -1;
	build[n] = '\0';
	for (int i = 0; i < 4; i++)
		*strrchr(build, '/') = '\0';
	return 0;
}

static int remove_folder(void **state)
{
	return rmdir(folder);
}

GROUP(make_folder, remove_folder);

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 2 && i < N_OF(modes); i++) {
		if (strcmp(argv[1], modes[i].name) == 0) {
			modes[i].run();
			return 0;
		}
	}
	return unit_run();
}
