/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that the driver did not make: host memory that the program registers, and what it imports. */
#include "preload/real.h"

/* The arguments of one call, behind the part that the runtime knows. */
struct passed {
	struct gpc_passed_call call;
	void *host;
	unsigned int flags;
	CUexternalMemory *external;
	const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc;
};

static CUresult note(struct passed *passed, CUresult result, const void *key)
{
	passed->call.ret_address = (uint64_t)(uintptr_t)key;
	passed->call.ret_size = passed->call.size;
	return result;
}

/* ---- registered host memory, known by an address that is not the driver's ---- */

static CUresult make_registered(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemHostRegister_v2(passed->host, call->size, passed->flags);

	return note(passed, result, passed->host);
}

static CUresult make_registered_v1(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuMemHostRegister(passed->host, call->size, passed->flags);

	return note(passed, result, passed->host);
}

static CUresult host_register(
	void *p, size_t bytesize, unsigned int flags, CUresult (*make)(struct gpc_passed_call *))
{
	struct passed passed = {
		.call = { .make = make, .kind = GPUCACHE_KIND_REGISTERED, .size = bytesize },
		.host = p,
		.flags = flags,
	};
	CUresult result;

	if (!p || !enter())
		return make(&passed.call);
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
	return host_register(p, bytesize, Flags, make_registered_v1);
}

CUresult cuMemHostRegister_v2(void *p, size_t bytesize, unsigned int Flags)
{
	return host_register(p, bytesize, Flags, make_registered);
}

CUresult cuMemHostUnregister(void *p)
{
	struct gpc_tracked *tracked;
	CUresult result;

	if (!p || !enter())
		return real_cuMemHostUnregister(p);
	tracked = gpc_runtime_forget_key(GPUCACHE_KIND_REGISTERED, (uint64_t)(uintptr_t)p);
	result = real_cuMemHostUnregister(p);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_leave();
	return result;
}

/* ---- imports: their owner pays.  Buffers and arrays mapped from them have no memory of their own ---- */

static CUresult make_imported(struct gpc_passed_call *call)
{
	struct passed *passed = (struct passed *)call;
	CUresult result = real_cuImportExternalMemory(passed->external, passed->desc);

	return note(passed, result, result ? NULL : *passed->external);
}

CUresult cuImportExternalMemory(
	CUexternalMemory *extMem_out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *memHandleDesc)
{
	struct passed passed = {
		.call = { .make = make_imported, .kind = GPUCACHE_KIND_EXTERNAL },
		.external = extMem_out,
		.desc = memHandleDesc,
	};
	CUresult result;

	if (!extMem_out || !memHandleDesc || !enter())
		return real_cuImportExternalMemory(extMem_out, memHandleDesc);
	passed.call.size = memHandleDesc->size;
	result = gpc_runtime_passed_malloc(&passed.call);
	gpc_runtime_leave();
	return result;
}

CUresult cuDestroyExternalMemory(CUexternalMemory extMem)
{
	struct gpc_tracked *tracked;
	CUresult result;

	if (!enter())
		return real_cuDestroyExternalMemory(extMem);
	tracked = gpc_runtime_forget_key(GPUCACHE_KIND_EXTERNAL, (uint64_t)(uintptr_t)extMem);
	result = real_cuDestroyExternalMemory(extMem);
	gpc_runtime_forgotten(tracked, result);
	gpc_runtime_leave();
	return result;
}
