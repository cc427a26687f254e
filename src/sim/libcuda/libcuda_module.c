/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: memory that a context takes for itself: modules, libraries, the kernels' heap.
 *
 * A module takes the size given by GPUSIM at once; the real driver loads lazily and in chunks.  The code of a simulated
 * library takes the size measured for the real one (code.def), once per context, with its first work.  A library is
 * loaded into the current context, like a module.  A CU_LIMIT_MALLOC_HEAP_SIZE above the default takes the difference.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "sim/libcuda/face.h"

#define MODULE_MAGIC 0x6d6f6475u
#define HEAP_MAGIC   0x68656170u

/* Stands for an image in a file, which is not read. */
#define FILE_IMAGE ""

#define HEAP_DEFAULT  (8 * GPC_MIB)
#define LIMIT_DEFAULT 1024

/* The rows of code.def.  gpusim_code() returns the address of a row as the image to load. */
static const struct code {
	const char *library;
	uint64_t bytes;
} codes[] = {
#define CODE(library, mib) { library, (mib)*GPC_MIB },
#include "sim/libcuda/code.def"
};

#define N_CODES (sizeof codes / sizeof codes[0])

struct load {
	uint32_t magic;
	const struct code *code; /* NULL: a module of the program */
	struct gpc_sim_image image;
	struct gpc_sim_context *context;
	uint64_t bytes;
	struct gpc_list link;
};

static struct gpc_list loads = { &loads, &loads };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult load_create(
	struct gpc_sim_context *context, uint32_t magic, uint64_t bytes, struct load **ret_load)
{
	struct load *load = calloc(1, sizeof *load);
	CUresult res =
		load ? gpc_sim_device_charge(context->device, bytes) : CUDA_ERROR_OUT_OF_MEMORY;

	if (res != CUDA_SUCCESS) {
		free(load);
		return res;
	}
	load->magic = magic;
	load->context = context;
	load->bytes = bytes;
	pthread_mutex_lock(&lock);
	gpc_list_append(&loads, &load->link);
	pthread_mutex_unlock(&lock);
	*ret_load = load;
	return CUDA_SUCCESS;
}

static void load_destroy_locked(struct load *load)
{
	face_names_end(load);
	gpc_sim_device_uncharge(load->context->device, load->bytes);
	gpc_list_remove(&load->link);
	load->magic = 0;
	free(load);
}

/* Finds a load by address, kind and context; NULL, 0 and NULL match any. */
static struct load *find_locked(
	const void *address, uint32_t magic, const struct gpc_sim_context *context)
{
	gpc_list_each (link, &loads) {
		struct load *load = gpc_list_entry(link, struct load, link);

		if ((!address || address == load) && (!context || load->context == context) &&
			(!magic || load->magic == magic))
			return load;
	}
	return NULL;
}

bool face_is_module(const void *handle, struct gpc_sim_image *ret_image)
{
	pthread_mutex_lock(&lock);
	const struct load *load = handle ? find_locked(handle, MODULE_MAGIC, NULL) : NULL;
	if (load && ret_image)
		*ret_image = load->image;
	pthread_mutex_unlock(&lock);
	return load;
}

void face_loads_end(struct gpc_sim_context *context)
{
	struct load *load;

	pthread_mutex_lock(&lock);
	while ((load = find_locked(NULL, 0, context)))
		load_destroy_locked(load);
	pthread_mutex_unlock(&lock);
}

static const struct code *code_of_image(const void *image)
{
	for (size_t i = 0; i < N_CODES; i++)
		if (image == &codes[i])
			return &codes[i];
	return NULL;
}

static bool has_code(const struct gpc_sim_context *context, const struct code *code)
{
	bool has = false;

	pthread_mutex_lock(&lock);
	gpc_list_each (link, &loads) {
		const struct load *load = gpc_list_entry(link, struct load, link);

		has = has || (load->code == code && load->context == context);
	}
	pthread_mutex_unlock(&lock);
	return has;
}

int gpusim_has_code(void)
{
	return face_sim()->config.has_code;
}

const void *gpusim_code(const char *library)
{
	struct gpc_sim_context *context = gpusim_has_code() ? face_current() : NULL;

	for (size_t i = 0; context && i < N_CODES; i++)
		if (strncmp(library, codes[i].library, strlen(codes[i].library)) == 0)
			return has_code(context, &codes[i]) ? NULL : &codes[i];
	return NULL;
}

int gpusim_image(const void *image, int *ret_ptx, int *ret_binary)
{
	struct gpc_sim_image chosen;
	CUresult res = gpc_sim_image_choose(image, face_sim()->config.model, &chosen);

	if (res == CUDA_SUCCESS) {
		*ret_ptx = chosen.ptx;
		*ret_binary = chosen.binary;
	}
	return (int)res;
}

static CUresult module_load(const char *entry, void **ret_handle, const void *image)
{
	const struct code *code = code_of_image(image);
	struct gpc_sim_context *context;
	struct gpc_sim_image chosen;
	struct load *load;
	CUresult res = face_enter(GPC_SIM_COST_LAUNCH, entry, &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!ret_handle || !image)
		return CUDA_ERROR_INVALID_VALUE;
	res = gpc_sim_image_choose(image, face_sim()->config.model, &chosen);
	if (res == CUDA_SUCCESS)
		res = load_create(context, MODULE_MAGIC,
			code ? code->bytes : face_sim()->config.module_cost, &load);
	if (res != CUDA_SUCCESS)
		return res;
	load->image = chosen;
	load->code = code;
	*ret_handle = load;
	return CUDA_SUCCESS;
}

static CUresult module_unload(const char *entry, const void *handle)
{
	struct load *load;
	CUresult res = face_enter(GPC_SIM_COST_LAUNCH, entry, NULL);

	if (res != CUDA_SUCCESS)
		return res;
	pthread_mutex_lock(&lock);
	load = handle ? find_locked(handle, MODULE_MAGIC, NULL) : NULL;
	if (load)
		load_destroy_locked(load);
	pthread_mutex_unlock(&lock);
	return load ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	return path ? module_load("cuModuleLoad", (void **)module, FILE_IMAGE)
		    : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	return module_load("cuModuleLoadData", (void **)module, image);
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int n_options,
	CUjit_option *options, void **values)
{
	return module_load("cuModuleLoadDataEx", (void **)module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	return module_load("cuModuleLoadFatBinary", (void **)module, image);
}

CUresult cuModuleUnload(CUmodule module)
{
	return module_unload("cuModuleUnload", module);
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
	void **values, unsigned int n_options, CUlibraryOption *library_options,
	void **library_values, unsigned int n_library_options)
{
	return module_load("cuLibraryLoadData", (void **)library, code);
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *options,
	void **values, unsigned int n_options, CUlibraryOption *library_options,
	void **library_values, unsigned int n_library_options)
{
	return path ? module_load("cuLibraryLoadFromFile", (void **)library, FILE_IMAGE)
		    : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	return module_unload("cuLibraryUnload", library);
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
	/* CU_MODULE_LAZY_LOADING */
	*mode = 2;
	return CUDA_SUCCESS;
}

/* ---- limits ---- */

CUresult cuCtxGetLimit(size_t *value, CUlimit limit)
{
	struct gpc_sim_context *context;
	const struct load *heap;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxGetLimit", &context);

	if (res != CUDA_SUCCESS)
		return res;
	*value = LIMIT_DEFAULT;
	if (limit != CU_LIMIT_MALLOC_HEAP_SIZE)
		return CUDA_SUCCESS;
	pthread_mutex_lock(&lock);
	heap = find_locked(NULL, HEAP_MAGIC, context);
	*value = HEAP_DEFAULT + (heap ? heap->bytes : 0);
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct gpc_sim_context *context;
	struct load *heap;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxSetLimit", &context);

	if (res != CUDA_SUCCESS || limit != CU_LIMIT_MALLOC_HEAP_SIZE)
		return res;
	pthread_mutex_lock(&lock);
	heap = find_locked(NULL, HEAP_MAGIC, context);
	if (heap)
		load_destroy_locked(heap);
	pthread_mutex_unlock(&lock);
	return value > HEAP_DEFAULT ? load_create(context, HEAP_MAGIC, value - HEAP_DEFAULT, &heap)
				    : CUDA_SUCCESS;
}
