/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds the exception with libc10's constructor of c10::Error and throws it by libstdc++'s __cxa_throw; both are found
 * by name in PyTorch's libraries.  The caller is PyTorch if its return address lies in one of PyTorch's libraries.
 */
#include "base/module.h"
#include "base/text.h"
#include "gpucache.h"
#include "preload/real.h"
#include "preload/torch.h"
#include "runtime/memory.h"
#include "runtime/process/api.h"
#include "runtime/process/enter.h"

#include <dlfcn.h>
#include <string.h>

/* c10::SourceLocation */
struct source {
	const char *function;
	const char *file;
	uint32_t line;
};

/* std::string of libstdc++, empty. */
struct string {
	char *text;
	size_t length;
	char room[16];
};

/* The bytes allocated for the exception: more than any version of c10::Error takes. */
#define EXCEPTION_SIZE 1024

#define STRING "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"

struct parts {
	void *(*allocate)(size_t size);
	void (*construct)(void *error, struct source source, struct string *text);
	void (*append)(struct string *string, const char *text, size_t length);
	void (*raise)(void *error, void *type, void (*destroy)(void *));
	void *(*vtable)[5]; /* offset, type, destructor, deleting destructor, what */
	void *type;
};

static bool find(const void *library, const char *name, void *ret_symbol)
{
	void *symbol = gpc_real_dlsym_call((void *)(uintptr_t)library, name);

	memcpy(ret_symbol, &symbol, sizeof symbol);
	return symbol != NULL;
}

static bool find_parts(bool is_oom, struct parts *ret_parts)
{
	/* libc10_cuda depends on libc10 and the C++ runtime, so a lookup in it searches both. */
	void *library = dlopen("libc10_cuda.so", RTLD_NOLOAD | RTLD_LAZY);
	bool is_there;

	if (!library)
		return false;
	is_there = find(library, "__cxa_allocate_exception", &ret_parts->allocate) &&
		   find(library, "__cxa_throw", &ret_parts->raise) &&
		   find(library, "_ZN3c105ErrorC1ENS_14SourceLocationE" STRING,
			   &ret_parts->construct) &&
		   find(library,
			   "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_appendEPKcm",
			   &ret_parts->append) &&
		   find(library, is_oom ? "_ZTVN3c1016OutOfMemoryErrorE" : "_ZTVN3c105ErrorE",
			   &ret_parts->vtable) &&
		   find(library, is_oom ? "_ZTIN3c1016OutOfMemoryErrorE" : "_ZTIN3c105ErrorE",
			   &ret_parts->type);
	(void)dlclose(library); /* drops our reference; PyTorch has its own */
	return is_there;
}

bool gpc_torch_is_caller(const void *caller)
{
	static const char *const libraries[] = { "libtorch", "libc10", NULL };

	return gpc_module_of(caller, libraries).is_named;
}

/* Reads what cudaMemGetInfo would report to the program; false if it would fail. */
static bool ask_free(int device, size_t *ret_available, size_t *ret_total)
{
	bool is_known = false;
	bool must_pop;

	if (!enter())
		return false;
	if (!gpc_runtime_enter_device(device, &must_pop)) {
		is_known = !real_cuMemGetInfo_v2(ret_available, ret_total);
		if (is_known)
			gpc_runtime_adjust_free(ret_available, ret_total);
		gpc_runtime_leave_device(must_pop);
	}
	gpc_runtime_leave();
	return is_known;
}

/* Writes PyTorch's own wording, which programs search for. */
static void write_text(struct gpc_text *text, CUresult error, size_t size, int device)
{
	size_t available = 0;
	size_t total = 0;

	if (error != CUDA_ERROR_OUT_OF_MEMORY) {
		gpc_text_add(
			text, "CUDA error: %s (%d)", gpucache_error_text((int)error), (int)error);
		gpc_text_add_amounts(text, ", for an allocation of @", size);
		return;
	}
	gpc_text_add_amounts(text, "CUDA out of memory. Tried to allocate @. ", size);
	if (ask_free(device, &available, &total)) {
		gpc_text_add(text, "GPU %d", device);
		gpc_text_add_amounts(
			text, " has a total capacity of @ of which @ is free. ", total, available);
	}
	gpc_text_add(text, "Who holds the rest: gpumem-report oom");
}

void gpc_torch_raise(const void *caller, CUresult error, size_t size, int device)
{
	const struct source source = { "gpucache_torch_malloc", "libgpucache.so", 0 };
	struct string message = { .text = message.room };
	struct parts parts;
	GPC_TEXT(text, 256);
	void *exception;

	if (!gpc_torch_is_caller(caller) || !find_parts(error == CUDA_ERROR_OUT_OF_MEMORY, &parts))
		return;
	write_text(&text, error, size, device);
	parts.append(&message, text.buf, text.len);
	exception = parts.allocate(EXCEPTION_SIZE);
	parts.construct(exception, source, &message); /* moves the text out */
	memcpy(exception, &(void *){ &(*parts.vtable)[2] }, sizeof(void *));
	parts.raise(exception, parts.type, (void (*)(void *))(uintptr_t)(*parts.vtable)[2]);
}
