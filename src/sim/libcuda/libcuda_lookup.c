/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stand-in driver: lookup of functions by name.
 *
 * cuGetProcAddress returns the newest variant of a base name that the requested version and this driver have.  With the
 * per-thread flag, a _ptsz or _ptds variant is preferred.  cuGetExportTable provides no table.
 */
#include <string.h>

#include "sim/libcuda/face.h"

struct entry {
	const char *base;
	int since;
	int is_per_thread;
	void *function;
};

/* Stores functions as void *: POSIX allows that, ISO C has no such conversion. */
static const struct entry entries[] = {
#define ENTRY(symbol, name, version, per_thread) \
	{ .base = #name,                         \
		.since = version,                \
		.is_per_thread = per_thread,     \
		.function = (void *)symbol },
#include "sim/libcuda/entries.def"
};

/* Functions that exist and fail.  Each has one row, for its newest version. */
#define LACKS(name) CUresult name(void);
#include "sim/libcuda/lacking.def"

static const struct lacking {
	const char *symbol;
	void *function;
} lacking[] = {
#define LACKS(name) { .symbol = #name, .function = (void *)name },
#include "sim/libcuda/lacking.def"
};

static void *find_lacking(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < sizeof lacking / sizeof lacking[0]; i++) {
		const char *behind = lacking[i].symbol + len;

		if (strncmp(lacking[i].symbol, name, len) == 0 &&
			(!*behind || (behind[0] == '_' && behind[1] == 'v')))
			return lacking[i].function;
	}
	return NULL;
}

/* Returns the status for cuGetProcAddress: 0 if *ret_function was found. */
static CUdriverProcAddressQueryResult find(
	const char *name, int version, cuuint64_t flags, void **ret_function)
{
	const int has = face_sim()->config.driver_version;
	bool wants_per_thread = flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
	const struct entry *best = NULL;
	bool is_known = false;

	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		const struct entry *entry = &entries[i];
		if (strcmp(entry->base, name) != 0 || entry->since > has)
			continue;
		is_known = true;
		if (entry->since > version || (entry->is_per_thread && !wants_per_thread))
			continue;
		if (!best || entry->is_per_thread > best->is_per_thread ||
			(entry->is_per_thread == best->is_per_thread &&
				entry->since >= best->since))
			best = entry;
	}
	*ret_function = best ? best->function : is_known ? NULL : find_lacking(name);
	if (*ret_function)
		return CU_GET_PROC_ADDRESS_SUCCESS;
	return is_known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			: CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
	CUdriverProcAddressQueryResult *status)
{
	void *function = NULL;
	CUdriverProcAddressQueryResult result;

	if (!symbol || !pfn || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	result = find(symbol, version, flags, &function);
	if (status)
		*status = result;
	*pfn = function;
	return function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	return cuGetProcAddress_v2(symbol, pfn, version, flags, NULL);
}

/* NVRTC requests this table and works without it, so its request causes no warning. */
static const unsigned char nvrtc_table[sizeof(CUuuid)] = { 0xda, 0x91, 0x51, 0xd3, 0x3a, 0xe6, 0xcc,
	0x41, 0xa5, 0xc0, 0x4f, 0x26, 0xd5, 0x33, 0xe3, 0x28 };

CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
	if (!id || memcmp(id, nvrtc_table, sizeof nvrtc_table) != 0)
		face_note_export_table();
	if (table)
		*table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetErrorName(CUresult error, const char **text)
{
	if (!text)
		return CUDA_ERROR_INVALID_VALUE;
	switch ((int)error) {
#define RESULT(name, number)   \
	case number:           \
		*text = #name; \
		return CUDA_SUCCESS;
#include "driver/cuda_results.def"
#undef RESULT
	default:
		*text = NULL;
		return CUDA_ERROR_INVALID_VALUE;
	}
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	static const struct {
		CUresult code;
		const char *text;
	} texts[] = {
		{ CUDA_SUCCESS, "no error" },
		{ CUDA_ERROR_INVALID_VALUE, "invalid argument" },
		{ CUDA_ERROR_OUT_OF_MEMORY, "out of memory" },
		{ CUDA_ERROR_NOT_INITIALIZED, "initialization error" },
		{ CUDA_ERROR_DEINITIALIZED, "driver shutting down" },
		{ CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected" },
		{ CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal" },
		{ CUDA_ERROR_INVALID_CONTEXT, "invalid device context" },
		{ CUDA_ERROR_NO_BINARY_FOR_GPU,
			"no kernel image is available for execution on the device" },
		{ CUDA_ERROR_INVALID_PTX, "a PTX JIT compilation failed" },
		{ CUDA_ERROR_INVALID_HANDLE, "invalid resource handle" },
		{ CUDA_ERROR_NOT_FOUND, "named symbol not found" },
		{ CUDA_ERROR_NOT_READY, "device not ready" },
		{ CUDA_ERROR_ILLEGAL_ADDRESS, "an illegal memory access was encountered" },
		{ CUDA_ERROR_CONTEXT_IS_DESTROYED, "context is destroyed" },
		{ CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure" },
		{ CUDA_ERROR_NOT_SUPPORTED, "operation not supported" },
		{ CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
			"operation not permitted when stream is capturing" },
		{ CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
			"operation failed due to a previous error during capture" },
	};

	CUresult res = cuGetErrorName(error, text);
	if (res != CUDA_SUCCESS)
		return res;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (texts[i].code == error)
			*text = texts[i].text;
	return CUDA_SUCCESS;
}
