/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses a plugin of XLA as jaxlib does: pjrt PLUGIN SCENE.
 *
 * At the end it prints how many bytes of arrays the plugin has on GPUs for it, and how often the plugin was asked where one is.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>

#include "pjrt_api.h"

static const struct api *api;
static struct api *own; /* the plugin's, of which nobody else knows */
static size_t hidden;   /* bytes of arrays made by that */

static void *call(enum place place, void *args)
{
	return api->fns[place](args);
}

#define CALL(place, type, ...) call(place, &(struct type){ sizeof(struct type), NULL, __VA_ARGS__ })

/* Says an error, which is then gone; returns whether there was one. */
static bool failed(const char *what, void *error)
{
	struct text_of message = { sizeof message, NULL, error, NULL, 0 };

	if (!error)
		return false;
	(void)call(ERROR_MESSAGE, &message);
	printf("%s: %.*s\n", what, (int)message.size, message.text);
	(void)CALL(ERROR_DESTROY, about, error, { 0 });
	return true;
}

static void *create(size_t hardware_id)
{
	struct create made = { .struct_size = sizeof made, .n_options = hardware_id };

	if (failed("create", call(CLIENT_CREATE, &made)))
		exit(1);
	return made.client;
}

static void destroy_client(void *client)
{
	(void)CALL(CLIENT_DESTROY, about, client, { 0 });
}

static void *put(void *client, size_t size)
{
	const int64_t dims[] = { (int64_t)size };
	struct from_host made = {
		.struct_size = sizeof made, .client = client, .dims = dims, .num_dims = 1
	};

	return failed("put", call(CLIENT_BUFFER_FROM_HOST_BUFFER, &made)) ? NULL : made.buffer;
}

static void *copy(enum place place, void *buffer, void *to)
{
	struct copy made = { sizeof made, NULL, buffer, to, NULL };

	return failed("copy", call(place, &made)) ? NULL : made.copied;
}

static void destroy(void *buffer)
{
	(void)CALL(BUFFER_DESTROY, about, buffer, { 0 });
}

static void *compile(void *client, const struct code *code)
{
	struct compile made = { .struct_size = sizeof made, .client = client, .program = code };

	(void)call(CLIENT_COMPILE, &made);
	return made.loaded;
}

static void execute(void *loaded, void *argument, void **outputs)
{
	void *const arguments[] = { argument };
	void *const *const lists[] = { arguments };
	void **const output_lists[] = { outputs };

	(void)failed("execute", CALL(LOADED_EXECUTABLE_EXECUTE, execute, loaded, NULL, lists, 1,
					argument != NULL, output_lists, NULL, NULL));
}

/* From the host, copied, deleted, donated. */
static void arrays(void)
{
	const struct code code = {
		.name = "jit_step", .n_outputs = 2, .sizes = { MIB, 3 * MIB }, .donates = true
	};
	void *client = create(0);
	void *outputs[2];
	struct list_of memories = { .struct_size = sizeof memories, .object = client };
	void *first = put(client, 2 * MIB);
	void *second = put(client, 4 * MIB);

	(void)call(CLIENT_ADDRESSABLE_MEMORIES, &memories);
	(void)copy(BUFFER_COPY_TO_MEMORY, first, memories.items[1]);
	(void)copy(BUFFER_COPY_TO_MEMORY, first, memories.items[0]);
	destroy(copy(BUFFER_COPY_TO_DEVICE, first, client));
	(void)CALL(BUFFER_DELETE, about, first, { 0 });
	destroy(first);
	destroy(NULL);
	execute(compile(client, &code), second, outputs);
	destroy(outputs[0]);
}

/* Of an array, of an execution, and of outputs that have no memory. */
static void failures(void)
{
	const struct code refused = {
		.name = "jit_refused", .n_outputs = 1, .sizes = { MIB }, .outcome = REFUSES
	};
	const struct code late = {
		.name = "jit_late", .n_outputs = 2, .sizes = { MIB, MIB }, .outcome = LATER
	};
	void *client = create(0);
	void *outputs[2];

	(void)put(client, 2 * MIB);
	(void)put(client, 64 * MIB);
	execute(compile(client, &refused), NULL, outputs);
	execute(compile(client, &late), NULL, outputs);
}

/* The error of a program that XLA executed later comes to the next one. */
static void blamed(void)
{
	const struct code large = {
		.name = "jit_large", .n_outputs = 1, .sizes = { MIB }, .temporaries = 3584 * MIB
	};
	const struct code next = {
		.name = "jit_next", .n_outputs = 1, .sizes = { MIB }, .outcome = REFUSES
	};
	void *client = create(0);
	void *outputs[2];

	execute(compile(client, &large), NULL, outputs);
	execute(compile(client, &next), NULL, outputs);
}

static struct {
	void *loaded;
	pthread_t thread;
	void *outputs[8];
} run[2];

static void *execute_run(void *arg)
{
	const size_t i = (size_t)arg;

	execute(run[i].loaded, NULL, run[i].outputs);
	return NULL;
}

/* The first executions of a program at once.  A program with the same handle, but one output, comes later. */
static void twice(void)
{
	const struct code code = { .name = "jit_many", .n_outputs = 8, .waits = true };
	const struct code small = { .name = "jit_one", .n_outputs = 1, .sizes = { MIB } };
	void *client = create(0);
	struct copy bystander = { sizeof bystander, NULL, put(client, MIB), client, NULL };
	void *outputs[8];
	void *loaded = compile(client, &code);

	for (size_t i = 0; i < 2; i++) {
		run[i].loaded = loaded;
		pthread_create(&run[i].thread, NULL, execute_run, (void *)i);
	}
	for (size_t i = 0; i < 2; i++)
		pthread_join(run[i].thread, NULL);
	(void)CALL(LOADED_EXECUTABLE_DESTROY, about, loaded, { 0 });
	/* Who looks beyond the outputs sees an array. */
	(void)own->fns[BUFFER_COPY_TO_DEVICE](&bystander);
	hidden = MIB;
	for (size_t i = 0; i < 8; i++)
		outputs[i] = bystander.copied;
	execute(compile(client, &small), NULL, outputs);
}

/* The first output is too small for most samples. */
static void sampled(void)
{
	const struct code code = {
		.name = "jit_step", .n_outputs = 3, .sizes = { 16, 2 * MIB, 16 }
	};
	void *outputs[3];

	execute(compile(create(0), &code), NULL, outputs);
}

/* Outputs that are not ready have an address that says nothing. */
static void unready(void)
{
	const struct code delayed = {
		.name = "jit_delayed", .n_outputs = 1, .sizes = { MIB }, .outcome = DELAYS
	};
	const struct code late = {
		.name = "jit_late", .n_outputs = 1, .sizes = { MIB }, .outcome = LATER
	};
	void *client = create(0);
	void *outputs[1];

	(void)put(client, MIB);
	execute(compile(client, &delayed), NULL, outputs);
	execute(compile(client, &late), NULL, outputs);
}

/* Outputs that are not ready, after a failure of as much, are no success. */
static void unsure(void)
{
	const struct code late = {
		.name = "jit_late", .n_outputs = 1, .sizes = { MIB }, .outcome = LATER
	};
	const struct code delayed = {
		.name = "jit_delayed", .n_outputs = 1, .sizes = { 1024 * MIB }, .outcome = DELAYS
	};
	void *client = create(0);
	void *outputs[1];

	execute(compile(client, &late), NULL, outputs);
	execute(compile(client, &delayed), NULL, outputs);
}

/* More clients, one after another, than there are rows of memories; the last on the other GPU, with an earlier one's memories. */
static void clients(void)
{
	CUcontext context;

	for (int i = 0; i < 100; i++) {
		void *client = create(0);

		destroy(put(client, MIB));
		destroy_client(client);
	}
	if (cuDevicePrimaryCtxRetain(&context, 1) || cuCtxSetCurrent(context))
		exit(3);
	(void)put(create(1), 5 * MIB);
}

/* A pool of physical memory, and plain memory beside it: more than the first pool, so that it is a peak. */
static void physical(void)
{
	CUdeviceptr beside;

	destroy_client(create(0));
	(void)put(create(0), 2 * MIB);
	if (cuMemAlloc(&beside, 80 * MIB))
		exit(3);
}

static const struct {
	const char *name;
	void (*play)(void);
} scenes[] = {
	{ "arrays", arrays },
	{ "failures", failures },
	{ "blamed", blamed },
	{ "twice", twice },
	{ "sampled", sampled },
	{ "unready", unready },
	{ "unsure", unsure },
	{ "clients", clients },
	{ "physical", physical },
};

static void *find(void *plugin, const char *name, void *ret_function)
{
	*(void **)ret_function = dlsym(plugin, name);
	return *(void **)ret_function;
}

int main(int argc, char **argv)
{
	void *plugin = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
	const struct api *(*get)(void);
	struct api *(*get_own)(void);
	size_t (*count)(enum place place);
	size_t (*sum)(void);
	CUcontext context;

	if (!plugin || cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) ||
		cuCtxSetCurrent(context) || !find(plugin, "GetPjrtApi", &get) ||
		!find(plugin, "own_table", &get_own) || !find(plugin, "calls_at", &count) ||
		!find(plugin, "live_bytes", &sum))
		return 3;
	api = get();
	own = get_own();
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		if (strcmp(argv[2], scenes[i].name) == 0)
			scenes[i].play();
	printf("arrays: %zu\nasked: %zu\n", sum() - hidden, count(BUFFER_MEMORY));
	return 0;
}
