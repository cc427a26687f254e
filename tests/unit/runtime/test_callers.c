/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/callers.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/process/stacks.h"
#include "world.h"

#define SOURCE                                       \
	"int pass(int (*next)(void *), void *arg)\n" \
	"{\n"                                        \
	"	volatile int room[8] = { 0 };\n"           \
	"	return next(arg) + room[0];\n"             \
	"}\n"

static const char *const names[] = { "libc10_cuda.so", "xla_cuda_plugin.so",
	"libtensorflow_cc.so.2", "librmm.so", "libnccl.so.2", "libcudart.so.13" };

static char folder[] = "/tmp/gpc-callers-XXXXXX";

static int make_libraries(void **state)
{
	char command[1024];

	if (!mkdtemp(folder))
		return 1;
	for (size_t i = 0; i < N_OF(names); i++) {
		snprintf(command, sizeof command,
			"printf '%%s' '%s' | cc -O1 -fPIC -shared -x c -o %s/%s -", SOURCE, folder,
			names[i]);
		if (system(command))
			return 1;
	}
	return 0;
}

static int remove_libraries(void **state)
{
	char path[128];

	for (size_t i = 0; i < N_OF(names); i++) {
		snprintf(path, sizeof path, "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

GROUP(make_libraries, remove_libraries);

/* A chain of libraries, outermost first, that ends in a question. */
struct chain {
	const char *const *names;
	size_t size;
	bool has_stack;
};

static __attribute__((noinline)) int ask(const struct chain *chain)
{
	return gpc_caller_has_cache(
		chain->size, chain->has_stack ? gpc_runtime_stack_of(chain->size) : 0);
}

static int go_on(void *arg)
{
	struct chain chain = *(const struct chain *)arg;
	int (*pass)(int (*)(void *), void *);
	char path[128];
	void *library;

	if (!*chain.names)
		return ask(&chain);
	snprintf(path, sizeof path, "%s/%s", folder, *chain.names++);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	CHECK(library);
	*(void **)&pass = dlsym(library, "pass");
	return pass(go_on, &chain);
}

#define ASK(bytes, with_stack, ...)                                                 \
	go_on(&(struct chain){ .names = (const char *const[]){ __VA_ARGS__, NULL }, \
		.size = (bytes),                                                    \
		.has_stack = (with_stack) })

static void by_their_names(void)
{
	world_start();
	for (int i = 0; i < 3; i++) { /* first seen, then known */
		CHECK(ASK(2 * MIB, true, "libc10_cuda.so"));
		CHECK(ASK(2 * MIB, true, "xla_cuda_plugin.so"));
		CHECK(ASK(2 * MIB, true, "libtensorflow_cc.so.2"));
		CHECK(ASK(2 * MIB, true, "librmm.so"));
		CHECK(!ASK(2 * MIB, true, "libnccl.so.2"));
		CHECK(!ASK(2 * MIB - 1, true, "libc10_cuda.so"));
	}
}

TEST(a_caller_is_known_by_the_name_of_its_file)
{
	world_run(NULL, NULL, by_their_names);
	world_run(NULL, "stacks:sampled", by_their_names);
}

static void through_others(void)
{
	world_start();
	CHECK(ASK(2 * MIB, true, "libc10_cuda.so", "libcudart.so.13"));
	CHECK(ASK(2 * MIB, false, "libc10_cuda.so", "libcudart.so.13"));
	CHECK(!ASK(2 * MIB, true, "libc10_cuda.so", "libnccl.so.2"));
	CHECK(!ASK(2 * MIB, true, "libc10_cuda.so", "libnccl.so.2", "libcudart.so.13"));
	CHECK(ASK(2 * MIB, true, "libnccl.so.2", "libc10_cuda.so"));
}

TEST(the_caller_is_the_innermost_that_is_not_on_the_way_to_the_driver)
{
	world_run(NULL, NULL, through_others);
}

static void by_the_environment(void)
{
	setenv("PYTORCH_NO_CUDA_MEMORY_CACHING", "1", 1);
	setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "platform", 1);
	world_start();
	CHECK(!ASK(2 * MIB, true, "libc10_cuda.so"));
	CHECK(!ASK(2 * MIB, true, "xla_cuda_plugin.so"));
	CHECK(ASK(2 * MIB, true, "librmm.so"));
}

static void by_another_value(void)
{
	setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "bfc", 1);
	world_start();
	CHECK(ASK(2 * MIB, true, "xla_cuda_plugin.so"));
}

TEST(a_variable_says_that_it_has_no_cache)
{
	world_run(NULL, NULL, by_the_environment);
	world_run(NULL, NULL, by_another_value);
}

static void nobody(void)
{
	world_start();
	CHECK(!ASK(2 * MIB, true, "libc10_cuda.so"));
	CHECK(!ASK(2 * MIB, false, "libc10_cuda.so"));
}

TEST(nobody_is_asked_for_unless_the_option_says_so)
{
	world_run(NULL, "cache:on", nobody);
	world_run(NULL, "cache:on,stacks:off", nobody);
	world_run(NULL, "cache:off", nobody);
}

static void after_a_look(void)
{
	world_start();
	CHECK(!ASK(2 * MIB, false, "libc10_cuda.so")); /* loaded since the last look */
	gpc_callers_look();
	CHECK(ASK(2 * MIB, false, "libc10_cuda.so"));
	CHECK(gpc_callers.n == 1);
}

TEST(without_stacks_a_look_finds_what_was_loaded)
{
	world_run(NULL, "stacks:off", after_a_look);
}

static void come_and_go(void)
{
	char path[128];

	world_start();
	snprintf(path, sizeof path, "%s/libc10_cuda.so", folder);
	for (uint32_t i = 0; i < 20; i++) {
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

		gpc_callers_look();
		CHECK(gpc_callers.n == 1);
		dlclose(library);
		gpc_callers_look();
		CHECK(gpc_callers.n == 0);
	}
}

TEST(what_is_unloaded_is_forgotten)
{
	world_run(NULL, NULL, come_and_go);
}

static atomic_bool is_over;

static void *keep_asking(void *arg)
{
	while (!atomic_load(&is_over)) {
		(void)ASK(2 * MIB, false, "libc10_cuda.so");
		CHECK(!ASK(2 * MIB, false, "libnccl.so.2"));
	}
	return NULL;
}

static void *keep_looking(void *arg)
{
	while (!atomic_load(&is_over))
		gpc_callers_look();
	return NULL;
}

static void by_threads(void)
{
	void *(*const ways[])(void *) = { keep_asking, keep_asking, keep_looking, keep_looking };
	pthread_t threads[N_OF(ways)];
	char path[128];

	world_start();
	snprintf(path, sizeof path, "%s/librmm.so", folder);
	/* Loaded now, so that none of them lies where librmm.so was at the last look, and all are there at the last one. */
	(void)ASK(2 * MIB, false, "libc10_cuda.so", "libnccl.so.2");
	for (size_t i = 0; i < N_OF(ways); i++)
		CHECK(!pthread_create(&threads[i], NULL, ways[i], NULL));
	for (int i = 0; i < 200; i++)
		dlclose(dlopen(path, RTLD_NOW | RTLD_LOCAL));
	atomic_store(&is_over, true);
	for (size_t i = 0; i < N_OF(ways); i++)
		CHECK(!pthread_join(threads[i], NULL));
	gpc_callers_look();
	CHECK(ASK(2 * MIB, false, "libc10_cuda.so"));
}

TEST(threads_ask_while_others_look)
{
	world_run(NULL, NULL, by_threads);
}
