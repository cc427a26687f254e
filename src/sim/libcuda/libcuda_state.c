/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-in driver's state: the machine, cuInit, the stack of current contexts, primary contexts. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "driver/sticky.h"
#include "sim/libcuda/face.h"

#define MAX_STACK 32

struct primary {
	_Atomic(struct gpc_sim_context *)
		context; /* never freed once created; read without the lock */
	unsigned refs;
	unsigned flags;
	bool is_active;
};

static struct gpc_sim *machine;
static pthread_once_t machine_once = PTHREAD_ONCE_INIT;
static _Atomic bool is_up;
static _Atomic bool is_over;
static _Atomic bool is_forked;

static pthread_mutex_t primary_lock = PTHREAD_MUTEX_INITIALIZER;
static struct primary primaries[GPC_SIM_MAX_DEVICES];

static _Thread_local struct {
	struct gpc_sim_context *stack[MAX_STACK];
	unsigned depth;
} thread;

/* Warns if the host may have too little memory to store every byte that is copied to the GPUs. */
static void warn_of_full_data(const struct gpc_sim_config *config)
{
	double has = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	double wants = (double)config->memory * config->n_devices;

	if (config->is_data_full && wants > has)
		fprintf(stderr,
			"gpusim: data:full may need %.0f GiB of a host that has %.0f; data:lazy "
			"keeps "
			"%.0f at most\n",
			wants / (double)GPC_GIB, has / (double)GPC_GIB,
			(double)config->keep / (double)GPC_GIB);
}

static void machine_create(void)
{
	struct gpc_sim_config config = gpc_sim_config_default();
	const char *text = getenv("GPUSIM");

	if (text)
		gpc_sim_config_parse(&config, text);
	gpc_sim_config_set_visible(&config, getenv("CUDA_VISIBLE_DEVICES"));
	warn_of_full_data(&config);
	machine = gpc_sim_create(&config);
	if (!machine) {
		fprintf(stderr,
			"gpusim: the host has no address space for %u GPU(s) of %.0f GiB (ulimit "
			"-v, vm.overcommit_memory=2): simulate a smaller one\n",
			config.n_devices, (double)config.memory / (double)GPC_GIB);
		abort();
	}
}

struct gpc_sim *face_sim(void)
{
	pthread_once(&machine_once, machine_create);
	return machine;
}

static void in_child(void)
{
	if (atomic_load(&is_up))
		atomic_store(&is_forked, true);
}

static void at_end(void)
{
	if (!atomic_load(&is_forked))
		face_close(machine);
	atomic_store(&is_over, true);
}

static CUresult state(void)
{
	if (atomic_load_explicit(&is_over, memory_order_relaxed))
		return CUDA_ERROR_DEINITIALIZED;
	if (!atomic_load_explicit(&is_up, memory_order_acquire) ||
		atomic_load_explicit(&is_forked, memory_order_relaxed))
		return CUDA_ERROR_NOT_INITIALIZED;
	return gpc_sim_in_host_function() ? CUDA_ERROR_NOT_PERMITTED : CUDA_SUCCESS;
}

CUresult cuInit(unsigned int flags)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	CUresult res;

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (atomic_load(&is_over))
		return CUDA_ERROR_DEINITIALIZED;
	if (atomic_load(&is_forked))
		return CUDA_ERROR_NOT_INITIALIZED;
	face_log_call("cuInit");
	res = gpc_sim_fault_check(&face_sim()->faults, "cuInit");
	if (res != CUDA_SUCCESS)
		return res;
	if (face_sim()->config.n_devices == 0)
		return CUDA_ERROR_NO_DEVICE;
	pthread_mutex_lock(&lock);
	if (!atomic_load(&is_up)) {
		pthread_atfork(NULL, NULL, in_child);
		atexit(at_end);
		atomic_store(&is_up, true);
	}
	pthread_mutex_unlock(&lock);
	return CUDA_SUCCESS;
}

struct gpc_sim_context *face_current(void)
{
	return thread.depth ? thread.stack[thread.depth - 1] : NULL;
}

static CUresult primary_activate_locked(struct primary *primary, unsigned dev)
{
	struct gpc_sim_context *made = primary->context;
	CUresult res = CUDA_SUCCESS;

	if (primary->is_active)
		return CUDA_SUCCESS;
	if (!made)
		res = gpc_sim_context_create(machine, dev, primary->flags, &made);
	else
		res = gpc_sim_device_charge(&machine->devices[dev], machine->config.context_cost);
	if (res != CUDA_SUCCESS)
		return res;
	primary->context = made;
	atomic_store(&made->broken, 0);
	primary->is_active = true;
	return CUDA_SUCCESS;
}

CUresult face_enter(enum gpc_sim_cost cost, const char *entry, struct gpc_sim_context **ret_context)
{
	CUresult res = state();

	if (res != CUDA_SUCCESS)
		return res;
	face_log_call(entry);
	res = gpc_sim_call(machine, cost, entry);
	struct gpc_sim_context *context = face_current();
	if (gpc_cuda_is_sticky(res) && context)
		gpc_sim_context_break(context, res);
	if (res != CUDA_SUCCESS || !ret_context)
		return res;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_context = context;
	return gpc_sim_context_state(context);
}

CUresult face_enter_device(const char *entry, CUdevice dev)
{
	CUresult res = face_enter(GPC_SIM_COST_INFO, entry, NULL);

	return res == CUDA_SUCCESS && !face_has_device(dev) ? CUDA_ERROR_INVALID_DEVICE : res;
}

struct gpc_sim_context *face_context(CUcontext context)
{
	return (struct gpc_sim_context *)(void *)context;
}

CUcontext face_context_handle(struct gpc_sim_context *context)
{
	return (CUcontext)(void *)context;
}

struct gpc_sim_stream *face_stream(
	struct gpc_sim_context *context, CUstream stream, enum face_null null)
{
	struct gpc_sim_stream *sim_stream = (struct gpc_sim_stream *)(void *)stream;

	if (stream == CU_STREAM_PER_THREAD || (!stream && null == FACE_PER_THREAD))
		return gpc_sim_stream_of_thread(context);
	if (!stream || stream == CU_STREAM_LEGACY)
		return &context->legacy;
	return sim_stream->magic == GPC_SIM_STREAM_MAGIC ? sim_stream : NULL;
}

CUresult face_enter_stream(enum gpc_sim_cost cost, const char *entry, CUstream stream,
	enum face_null null, struct gpc_sim_stream **ret_stream)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(cost, entry, &context);

	if (res != CUDA_SUCCESS)
		return res;
	*ret_stream = face_stream(context, stream, null);
	return *ret_stream ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

struct gpc_sim_event *face_event(CUevent event)
{
	struct gpc_sim_event *sim_event = (struct gpc_sim_event *)(void *)event;

	return sim_event && sim_event->magic == GPC_SIM_EVENT_MAGIC ? sim_event : NULL;
}

/* ---- the stack of current contexts ---- */

static CUresult push(struct gpc_sim_context *context)
{
	if (thread.depth == MAX_STACK)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread.stack[thread.depth++] = context;
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent_v2(CUcontext ctx)
{
	CUresult res = state();

	if (res != CUDA_SUCCESS)
		return res;
	return ctx ? push(face_context(ctx)) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxPopCurrent_v2(CUcontext *pctx)
{
	CUresult res = state();

	if (res != CUDA_SUCCESS)
		return res;
	if (thread.depth == 0)
		return CUDA_ERROR_INVALID_CONTEXT;
	thread.depth--;
	if (pctx)
		*pctx = face_context_handle(thread.stack[thread.depth]);
	return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext ctx)
{
	return cuCtxPushCurrent_v2(ctx);
}

CUresult cuCtxPopCurrent(CUcontext *pctx)
{
	return cuCtxPopCurrent_v2(pctx);
}

CUresult cuCtxSetCurrent(CUcontext ctx)
{
	CUresult res = state();

	if (res != CUDA_SUCCESS)
		return res;
	if (thread.depth)
		thread.depth--;
	return ctx ? push(face_context(ctx)) : CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *pctx)
{
	CUresult res = state();

	if (res != CUDA_SUCCESS)
		return res;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	*pctx = face_context_handle(face_current());
	return CUDA_SUCCESS;
}

/* ---- creation and destruction of contexts ---- */

CUresult cuCtxCreate_v2(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxCreate_v2", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	if (dev < 0)
		return CUDA_ERROR_INVALID_DEVICE;
	res = gpc_sim_context_create(face_sim(), (unsigned)dev, flags, &context);
	if (res != CUDA_SUCCESS)
		return res;
	*pctx = face_context_handle(context);
	return push(context);
}

CUresult cuCtxCreate(CUcontext *pctx, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v3(CUcontext *pctx, CUexecAffinityParam *params, int n_params,
	unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

CUresult cuCtxCreate_v4(
	CUcontext *pctx, CUctxCreateParams *params, unsigned int flags, CUdevice dev)
{
	return cuCtxCreate_v2(pctx, flags, dev);
}

void face_leave(const struct gpc_sim_context *context)
{
	if (face_current() == context)
		thread.depth--;
}

/* Frees the context's resources, but not its struct: later calls on the context return 709. */
static void end_context(struct gpc_sim_context *context)
{
	gpc_sim_context_reset(context);
	face_loads_end(context);
	gpc_sim_device_uncharge(context->device, face_sim()->config.context_cost);
	gpc_sim_context_break(context, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static struct primary *primary_of(struct gpc_sim_context *context)
{
	for (unsigned i = 0; i < GPC_SIM_MAX_DEVICES; i++)
		if (primaries[i].context == context)
			return &primaries[i];
	return NULL;
}

CUresult cuCtxDestroy_v2(CUcontext ctx)
{
	struct gpc_sim_context *context = face_context(ctx);
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxDestroy_v2", NULL);

	if (res != CUDA_SUCCESS)
		return res;
	if (!context || context->primary || primary_of(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (gpc_sim_context_state(context) == CUDA_ERROR_CONTEXT_IS_DESTROYED)
		return CUDA_ERROR_CONTEXT_IS_DESTROYED;
	face_leave(context);
	end_context(context);
	return CUDA_SUCCESS;
}

CUresult cuCtxAttach(CUcontext *pctx, unsigned int flags)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxAttach", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (!pctx || flags)
		return CUDA_ERROR_INVALID_VALUE;
	atomic_fetch_add(&context->n_attached, 1);
	*pctx = face_context_handle(context);
	return CUDA_SUCCESS;
}

CUresult cuCtxDetach(CUcontext ctx)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter(GPC_SIM_COST_INFO, "cuCtxDetach", &context);

	if (res != CUDA_SUCCESS)
		return res;
	if (face_context(ctx) != context || context->primary || primary_of(context))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (atomic_fetch_sub(&context->n_attached, 1) > 0)
		return CUDA_SUCCESS;
	face_leave(context);
	end_context(context);
	return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext ctx)
{
	return cuCtxDestroy_v2(ctx);
}

static CUresult primary_retain_locked(struct primary *primary, unsigned dev)
{
	CUresult res = primary_activate_locked(primary, dev);

	if (res == CUDA_SUCCESS)
		primary->refs++;
	return res;
}

CUresult face_primary_retain(unsigned device, struct gpc_sim_context **ret_context)
{
	CUresult res;

	pthread_mutex_lock(&primary_lock);
	res = primary_retain_locked(&primaries[device], device);
	if (res == CUDA_SUCCESS)
		*ret_context = primaries[device].context;
	pthread_mutex_unlock(&primary_lock);
	return res;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev)
{
	struct gpc_sim_context *context;
	CUresult res = face_enter_device("cuDevicePrimaryCtxRetain", dev);

	if (res != CUDA_SUCCESS)
		return res;
	if (!pctx)
		return CUDA_ERROR_INVALID_VALUE;
	res = face_primary_retain((unsigned)dev, &context);
	if (res == CUDA_SUCCESS)
		*pctx = face_context_handle(context);
	return res;
}

static void primary_end_locked(struct primary *primary)
{
	if (primary->is_active)
		end_context(primary->context);
	primary->is_active = false;
}

CUresult face_primary_release(unsigned dev)
{
	CUresult res = CUDA_SUCCESS;

	pthread_mutex_lock(&primary_lock);
	if (primaries[dev].refs == 0)
		res = CUDA_ERROR_INVALID_CONTEXT;
	else if (--primaries[dev].refs == 0)
		primary_end_locked(&primaries[dev]);
	pthread_mutex_unlock(&primary_lock);
	return res;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev)
{
	CUresult res = face_enter_device("cuDevicePrimaryCtxRelease_v2", dev);

	return res == CUDA_SUCCESS ? face_primary_release((unsigned)dev) : res;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice dev)
{
	return cuDevicePrimaryCtxRelease_v2(dev);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev)
{
	CUresult res = face_enter_device("cuDevicePrimaryCtxReset_v2", dev);

	if (res != CUDA_SUCCESS)
		return res;
	pthread_mutex_lock(&primary_lock);
	primary_end_locked(&primaries[dev]);
	gpc_sim_mempools_reset(face_sim(), &face_sim()->devices[dev]);
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxReset(CUdevice dev)
{
	return cuDevicePrimaryCtxReset_v2(dev);
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice dev, unsigned int flags)
{
	CUresult res = face_enter_device("cuDevicePrimaryCtxSetFlags_v2", dev);

	if (res == CUDA_SUCCESS)
		primaries[dev].flags = flags;
	return res;
}

CUresult cuDevicePrimaryCtxSetFlags(CUdevice dev, unsigned int flags)
{
	return cuDevicePrimaryCtxSetFlags_v2(dev, flags);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags, int *active)
{
	CUresult res = face_enter_device("cuDevicePrimaryCtxGetState", dev);

	if (res != CUDA_SUCCESS)
		return res;
	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	pthread_mutex_lock(&primary_lock);
	*flags = primaries[dev].flags;
	*active = primaries[dev].is_active;
	pthread_mutex_unlock(&primary_lock);
	return CUDA_SUCCESS;
}
