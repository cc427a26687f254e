/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: copies, fills, kernels.
 *
 * As in the real driver, an asynchronous copy from pageable host memory has read its source when it returns, and a copy
 * into pageable memory is complete when it returns.  Other asynchronous copies read and write when the stream reaches
 * their end.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sim/libcuda/face.h"

enum wait {
	ASYNC,
	SYNC
};

static uint64_t transfer_ns(uint64_t bytes)
{
	const struct gpc_sim_config *config = &face_sim()->config;

	return config->copy_ns +
	       (uint64_t)((double)bytes / (1 << 20) * (double)config->copy_ns_per_mib);
}

static bool is_host(uint64_t ptr)
{
	return !gpc_sim_device_of(face_sim(), ptr) && !gpc_sim_vmm_has(&face_sim()->vmm, ptr);
}

/* True for host memory unknown to the driver. */
static bool is_pageable(uint64_t ptr)
{
	return is_host(ptr) && !face_host_find(ptr, NULL);
}

static bool is_good(uint64_t ptr, uint64_t width, uint64_t rows, uint64_t pitch)
{
	return ptr && gpc_sim_is_valid(face_sim(), ptr, (rows - 1) * pitch + width);
}

/* Notes what a copy writes on the device, or that it reads a result there; that may be answered by other bytes. */
static void note(const struct gpc_sim_effect *shape, struct gpc_sim_effect *effect)
{
	char answer[FACE_MAX_READ];
	uint64_t size = shape->width * shape->rows;
	bool is_of_host = is_host(shape->src);

	if (is_host(shape->dst)) {
		if (!is_of_host && face_note_read(shape->src, size, answer) &&
			gpc_sim_effect_stage(face_sim(), effect))
			memcpy(effect->staged, answer, size);
	} else if (is_of_host || face_is_known(shape->src, size)) {
		face_note_write(shape->dst, size);
	}
}

static CUresult submit_copy(
	struct gpc_sim_stream *stream, enum wait wait, struct gpc_sim_effect shape)
{
	struct gpc_sim *sim = face_sim();
	bool is_captured = atomic_load(&stream->capture) != NULL;
	bool must_wait = wait == SYNC || (is_pageable(shape.dst) && !is_captured);

	if (shape.width == 0 || shape.rows == 0)
		return CUDA_SUCCESS;
	if (!is_good(shape.dst, shape.width, shape.rows, shape.dst_pitch) ||
		!is_good(shape.src, shape.width, shape.rows, shape.src_pitch))
		return CUDA_ERROR_INVALID_VALUE;
	struct gpc_sim_effect *effect = gpc_sim_effect_clone(&shape);
	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	face_log_copy(stream, shape.width * shape.rows, is_host(shape.dst), is_host(shape.src));
	if (is_pageable(shape.src) && !is_captured && !gpc_sim_effect_stage(sim, effect)) {
		gpc_sim_effect_destroy(effect);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (!is_captured)
		note(&shape, effect);
	CUresult res = gpc_sim_stream_submit(stream, effect);
	return res == CUDA_SUCCESS && must_wait ? gpc_sim_stream_sync(stream) : res;
}

/* Begins a copy.  A synchronous one is potentially unsafe, so a capture may forbid it. */
static CUresult enter(const char *entry, CUstream handle, enum face_null null, enum wait wait,
	struct gpc_sim_stream **ret_stream)
{
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, ret_stream);

	return res == CUDA_SUCCESS && wait == SYNC ? gpc_sim_capture_check_unsafe(face_sim()) : res;
}

static CUresult copy(const char *entry, enum face_null null, CUstream handle, enum wait wait,
	uint64_t dst, uint64_t src, size_t size)
{
	struct gpc_sim_stream *stream;
	struct gpc_sim_effect shape = {
		.kind = GPC_SIM_EFFECT_COPY,
		.duration_ns = transfer_ns(size),
		.dst = dst,
		.src = src,
		.width = size,
		.rows = 1,
	};
	CUresult res = enter(entry, handle, null, wait, &stream);

	return res == CUDA_SUCCESS ? submit_copy(stream, wait, shape) : res;
}

#define HOST(ptr) ((uintptr_t)(ptr))

FACE_PAIR(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	copy(entry, null, NULL, SYNC, dst, src, n))
FACE_PAIR(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
	copy(entry, null, stream, ASYNC, dst, src, n))
FACE_PAIR(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t n),
	copy(entry, null, NULL, SYNC, dst, HOST(src), n))
FACE_PAIR(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t n),
	copy(entry, null, NULL, SYNC, HOST(dst), src, n))
FACE_PAIR(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t n),
	copy(entry, null, NULL, ASYNC, dst, src, n))
FACE_PAIR(cuMemcpyHtoDAsync_v2, _ptsz,
	(CUdeviceptr dst, const void *src, size_t n, CUstream stream),
	copy(entry, null, stream, ASYNC, dst, HOST(src), n))
FACE_PAIR(cuMemcpyDtoHAsync_v2, _ptsz, (void *dst, CUdeviceptr src, size_t n, CUstream stream),
	copy(entry, null, stream, ASYNC, HOST(dst), src, n))
FACE_PAIR(cuMemcpyDtoDAsync_v2, _ptsz,
	(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream),
	copy(entry, null, stream, ASYNC, dst, src, n))

/* Resolves one side of a 2D copy to its first row and its pitch; false for misuse. */
static bool side_of(CUmemorytype type, const void *host, CUdeviceptr device, CUarray array,
	size_t pitch, size_t width, uint64_t *ret_base, uint64_t *ret_pitch)
{
	if (type == CU_MEMORYTYPE_ARRAY)
		return face_array_find(array, ret_base, ret_pitch) && *ret_pitch >= width;
	*ret_base = type == CU_MEMORYTYPE_HOST ? HOST(host) : device;
	*ret_pitch = pitch ? pitch : width;
	return *ret_pitch >= width;
}

static CUresult copy_2d(const char *entry, enum face_null null, CUstream handle, enum wait wait,
	const CUDA_MEMCPY2D *p)
{
	struct gpc_sim_stream *stream;
	CUresult res = enter(entry, handle, null, wait, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	uint64_t src, src_pitch, dst, dst_pitch;
	if (!p ||
		!side_of(p->srcMemoryType, p->srcHost, p->srcDevice, p->srcArray, p->srcPitch,
			p->WidthInBytes, &src, &src_pitch) ||
		!side_of(p->dstMemoryType, p->dstHost, p->dstDevice, p->dstArray, p->dstPitch,
			p->WidthInBytes, &dst, &dst_pitch))
		return CUDA_ERROR_INVALID_VALUE;
	struct gpc_sim_effect shape = {
		.kind = GPC_SIM_EFFECT_COPY,
		.duration_ns = transfer_ns(p->WidthInBytes * p->Height),
		.dst = dst + p->dstY * dst_pitch + p->dstXInBytes,
		.src = src + p->srcY * src_pitch + p->srcXInBytes,
		.dst_pitch = dst_pitch,
		.src_pitch = src_pitch,
		.width = p->WidthInBytes,
		.rows = p->Height,
	};
	return submit_copy(stream, wait, shape);
}

FACE_PAIR(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *p), copy_2d(entry, null, NULL, SYNC, p))
FACE_PAIR(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *p),
	copy_2d(entry, null, NULL, SYNC, p))
FACE_PAIR(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *p, CUstream stream),
	copy_2d(entry, null, stream, ASYNC, p))

/*
 * A fill is the device's work: unlike a copy's, its host memory is known to the driver (pinned, or of a pool), or all of
 * it is near.
 */
static bool is_filled(uint64_t dst, uint64_t size)
{
	struct face_host block;
	uint64_t base;
	uint64_t room;

	if (face_host_find(dst, &block))
		return size <= block.size - (dst - block.base);
	if (is_host(dst) && gpc_sim_mempool_find(face_sim(), dst, &base, &room, NULL))
		return size <= room - (dst - base);
	return !is_host(dst) || face_sim()->config.is_host_near;
}

/* Fills rows of n values of value_size bytes. */
static CUresult fill(const char *entry, enum face_null null, CUstream handle, uint64_t dst,
	uint64_t pitch, uint32_t value, uint32_t value_size, size_t n, size_t rows)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);
	struct gpc_sim_effect shape = {
		.kind = GPC_SIM_EFFECT_FILL,
		.duration_ns = transfer_ns(n * value_size * rows),
		.dst = dst,
		.dst_pitch = pitch,
		.width = n * value_size,
		.rows = rows,
		.value = value,
		.value_size = value_size,
	};

	if (res != CUDA_SUCCESS || n == 0 || rows == 0)
		return res;
	if (dst % value_size || !is_good(dst, shape.width, rows, pitch) ||
		!is_filled(dst, (rows - 1) * pitch + shape.width))
		return CUDA_ERROR_INVALID_VALUE;
	struct gpc_sim_effect *effect = gpc_sim_effect_clone(&shape);
	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (!atomic_load(&stream->capture) && rows == 1)
		face_note_write(dst, shape.width);
	return gpc_sim_stream_submit(stream, effect);
}

FACE_PAIR(cuMemsetD8_v2, _ptds, (CUdeviceptr dst, unsigned char v, size_t n),
	fill(entry, null, NULL, dst, 0, v, 1, n, 1))
FACE_PAIR(cuMemsetD16_v2, _ptds, (CUdeviceptr dst, unsigned short v, size_t n),
	fill(entry, null, NULL, dst, 0, v, 2, n, 1))
FACE_PAIR(cuMemsetD32_v2, _ptds, (CUdeviceptr dst, unsigned int v, size_t n),
	fill(entry, null, NULL, dst, 0, v, 4, n, 1))
FACE_PAIR(cuMemsetD2D8_v2, _ptds,
	(CUdeviceptr dst, size_t pitch, unsigned char v, size_t n, size_t rows),
	fill(entry, null, NULL, dst, pitch, v, 1, n, rows))
FACE_PAIR(cuMemsetD2D16_v2, _ptds,
	(CUdeviceptr dst, size_t pitch, unsigned short v, size_t n, size_t rows),
	fill(entry, null, NULL, dst, pitch, v, 2, n, rows))
FACE_PAIR(cuMemsetD2D32_v2, _ptds,
	(CUdeviceptr dst, size_t pitch, unsigned int v, size_t n, size_t rows),
	fill(entry, null, NULL, dst, pitch, v, 4, n, rows))
FACE_PAIR(cuMemsetD8Async, _ptsz, (CUdeviceptr dst, unsigned char v, size_t n, CUstream stream),
	fill(entry, null, stream, dst, 0, v, 1, n, 1))
FACE_PAIR(cuMemsetD16Async, _ptsz, (CUdeviceptr dst, unsigned short v, size_t n, CUstream stream),
	fill(entry, null, stream, dst, 0, v, 2, n, 1))
FACE_PAIR(cuMemsetD32Async, _ptsz, (CUdeviceptr dst, unsigned int v, size_t n, CUstream stream),
	fill(entry, null, stream, dst, 0, v, 4, n, 1))
FACE_PAIR(cuMemsetD2D8Async, _ptsz,
	(CUdeviceptr dst, size_t pitch, unsigned char v, size_t n, size_t rows, CUstream stream),
	fill(entry, null, stream, dst, pitch, v, 1, n, rows))
FACE_PAIR(cuMemsetD2D16Async, _ptsz,
	(CUdeviceptr dst, size_t pitch, unsigned short v, size_t n, size_t rows, CUstream stream),
	fill(entry, null, stream, dst, pitch, v, 2, n, rows))
FACE_PAIR(cuMemsetD2D32Async, _ptsz,
	(CUdeviceptr dst, size_t pitch, unsigned int v, size_t n, size_t rows, CUstream stream),
	fill(entry, null, stream, dst, pitch, v, 4, n, rows))

/* Ignores the flags, which only choose a memory barrier. */
FACE_PAIR(cuStreamWriteValue32_v2, _ptsz,
	(CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags),
	fill(entry, null, stream, ptr, 0, value, 4, 1, 1))
FACE_PAIR(cuStreamWriteValue32, _ptsz,
	(CUstream stream, CUdeviceptr ptr, cuuint32_t value, unsigned int flags),
	fill(entry, null, stream, ptr, 0, value, 4, 1, 1))

/* ---- prefetch and advice: managed memory only, without effect ---- */

static CUresult prefetch(const char *entry, enum face_null null, CUstream handle, uint64_t ptr)
{
	struct gpc_sim_stream *stream;
	struct face_host block;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	return face_host_find(ptr, &block) && block.kind == FACE_HOST_MANAGED
		       ? CUDA_SUCCESS
		       : CUDA_ERROR_INVALID_VALUE;
}

FACE_PAIR(cuMemPrefetchAsync, _ptsz, (CUdeviceptr ptr, size_t n, CUdevice dev, CUstream stream),
	prefetch(entry, null, stream, ptr))
FACE_PAIR(cuMemPrefetchAsync_v2, _ptsz,
	(CUdeviceptr ptr, size_t n, CUmemLocation location, unsigned int flags, CUstream stream),
	prefetch(entry, null, stream, ptr))

CUresult cuMemAdvise(CUdeviceptr ptr, size_t n, CUmem_advise advice, CUdevice dev)
{
	return prefetch("cuMemAdvise", FACE_LEGACY, NULL, ptr);
}

CUresult cuMemAdvise_v2(CUdeviceptr ptr, size_t n, CUmem_advise advice, CUmemLocation location)
{
	return cuMemAdvise(ptr, n, advice, 0);
}

/* ---- kernels ---- */

static CUresult launch(const char *entry, enum face_null null, CUstream handle, CUfunction function,
	const struct face_shape *shape, bool is_early, uint64_t duration_ns, unsigned n,
	const struct gpusim_range *ranges)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!function)
		return CUDA_ERROR_INVALID_HANDLE;
	face_log_launch(stream, function, shape);
	struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_KERNEL, duration_ns);
	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (n) {
		effect->ranges = calloc(n, sizeof *effect->ranges);
		if (!effect->ranges) {
			gpc_sim_effect_destroy(effect);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
	}
	effect->is_early = is_early;
	effect->n_ranges = n;
	for (unsigned i = 0; i < n; i++)
		effect->ranges[i] = (struct gpc_sim_range){
			.ptr = ranges[i].ptr, .size = ranges[i].size, .fill = ranges[i].fill
		};
	return gpc_sim_stream_submit(stream, effect);
}

/* A program's own kernel, whose effect is unknown. */
static CUresult launch_program(const char *entry, enum face_null null, CUstream handle,
	CUfunction function, const struct face_shape *shape, bool is_early)
{
	face_note_launch();
	return launch(entry, null, handle, function, shape, is_early, face_sim()->config.kernel_ns,
		0, NULL);
}

/* The function that gpusim_launch passes to cuLaunchKernel: a kernel whose effect is known. */
static char known_kernel;

struct known_work {
	uint64_t duration_ns;
	unsigned n_ranges;
	const struct gpusim_range *ranges;
};

static CUresult launch_kernel(const char *entry, enum face_null null, CUstream stream,
	CUfunction function, const struct face_shape *shape, void **params, bool is_early)
{
	const struct known_work *work;

	if (function != (CUfunction)(void *)&known_kernel)
		return launch_program(entry, null, stream, function, shape, is_early);
	work = params[0];
	return launch("gpusim_launch", null, stream, function, shape, is_early, work->duration_ns,
		work->n_ranges, work->ranges);
}

static bool is_early(const CUlaunchConfig *config)
{
	for (unsigned int i = 0; i < config->numAttrs; i++)
		if (config->attrs[i].id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
			return config->attrs[i].value.first != 0;
	return false;
}

static CUresult launch_configured(const char *entry, enum face_null null,
	const CUlaunchConfig *config, CUfunction function, void **params)
{
	if (!config || !config->gridDimX || !config->gridDimY || !config->gridDimZ ||
		!config->blockDimX || !config->blockDimY || !config->blockDimZ)
		return CUDA_ERROR_INVALID_VALUE;
	return launch_kernel(entry, null, config->hStream, function,
		&(struct face_shape){ { config->gridDimX, config->gridDimY, config->gridDimZ },
			{ config->blockDimX, config->blockDimY, config->blockDimZ },
			config->sharedMemBytes },
		params, is_early(config));
}

/* An empty grid or block. */
#define IS_EMPTY (!gx || !gy || !gz || !bx || !by || !bz)

FACE_PAIR(cuLaunchKernel, _ptsz,
	(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		unsigned int by, unsigned int bz, unsigned int shared, CUstream stream,
		void **params, void **extra),
	IS_EMPTY ? CUDA_ERROR_INVALID_VALUE
		 : launch_kernel(entry, null, stream, f,
			   &(struct face_shape){ { gx, gy, gz }, { bx, by, bz }, shared }, params,
			   false))
FACE_PAIR(cuLaunchKernelEx, _ptsz,
	(const CUlaunchConfig *config, CUfunction f, void **params, void **extra),
	launch_configured(entry, null, config, f, params))

/* Calls cuLaunchKernel by the symbol that the program itself would find, so that an interposer sees the launch. */
int gpusim_launch(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges)
{
	static _Atomic(__typeof__(&cuLaunchKernel)) found;
	struct known_work work = { duration_ns, n_ranges, ranges };
	void *params[] = { &work };
	__typeof__(&cuLaunchKernel) front = atomic_load(&found);

	if (!front) {
		*(void **)(void *)&front = dlsym(RTLD_DEFAULT, "cuLaunchKernel");
		front = front ? front : cuLaunchKernel;
		atomic_store(&found, front);
	}
	return (int)front(
		(CUfunction)(void *)&known_kernel, 1, 1, 1, 1, 1, 1, 0, stream, params, NULL);
}

int gpusim_launch_early(struct CUstream_st *stream, uint64_t duration_ns, unsigned n_ranges,
	const struct gpusim_range *ranges)
{
	static _Atomic(__typeof__(&cuLaunchKernelEx)) found;
	struct known_work work = { duration_ns, n_ranges, ranges };
	void *params[] = { &work };
	CUlaunchAttribute attribute = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		.value.first = 1 };
	const CUlaunchConfig config = { .gridDimX = 1,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 1,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
		.attrs = &attribute,
		.numAttrs = 1 };
	__typeof__(&cuLaunchKernelEx) front = atomic_load(&found);

	if (!front) {
		*(void **)(void *)&front = dlsym(RTLD_DEFAULT, "cuLaunchKernelEx");
		front = front ? front : cuLaunchKernelEx;
		atomic_store(&found, front);
	}
	return (int)front(&config, (CUfunction)(void *)&known_kernel, params, NULL);
}

int gpusim_copy(uint64_t dst, uint64_t src, size_t size)
{
	struct gpc_sim *sim = face_sim();

	if (!gpc_sim_is_valid(sim, dst, size) || !gpc_sim_is_valid(sim, src, size))
		return CUDA_ERROR_ILLEGAL_ADDRESS;
	gpc_sim_effect_copy_now(sim, dst, src, size);
	face_note_write(dst, size);
	return CUDA_SUCCESS;
}

static CUresult host_function(
	const char *entry, enum face_null null, CUstream handle, void (*fn)(void *), void *arg)
{
	struct gpc_sim_stream *stream;
	CUresult res = face_enter_stream(GPC_SIM_COST_LAUNCH, entry, handle, null, &stream);

	if (res != CUDA_SUCCESS)
		return res;
	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	/* A duration above 0, so that earlier work has ended when the function runs. */
	struct gpc_sim_effect *effect = gpc_sim_effect_create(GPC_SIM_EFFECT_HOST, 1);
	if (!effect)
		return CUDA_ERROR_OUT_OF_MEMORY;
	effect->host = fn;
	effect->arg = arg;
	return gpc_sim_stream_submit(stream, effect);
}

FACE_PAIR(cuLaunchHostFunc, _ptsz, (CUstream stream, CUhostFn fn, void *arg),
	host_function(entry, null, stream, fn, arg))

struct callback {
	CUstreamCallback fn;
	CUstream stream;
	void *arg;
};

static void call_back(void *arg)
{
	struct callback *callback = arg;

	callback->fn(callback->stream, CUDA_SUCCESS, callback->arg);
	free(callback);
}

static CUresult add_callback(
	const char *entry, enum face_null null, CUstream stream, CUstreamCallback fn, void *arg)
{
	struct callback *callback;

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	callback = malloc(sizeof *callback);
	if (!callback)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*callback = (struct callback){ .fn = fn, .stream = stream, .arg = arg };
	CUresult res = host_function(entry, null, stream, call_back, callback);
	if (res != CUDA_SUCCESS)
		free(callback);
	return res;
}

FACE_PAIR(cuStreamAddCallback, _ptsz,
	(CUstream stream, CUstreamCallback fn, void *arg, unsigned int flags),
	add_callback(entry, null, stream, fn, arg))
