/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVTX 3 by which a tool tells a program's copy of NVTX the addresses of its functions.
 * tests/conformance/check_nvtx_abi.c compares it with the real nvtx3 headers.
 *
 * Source: nvtx3/nvtxDetail/nvtxTypes.h and nvToolsExt.h of CUDA 13.0.  The layout has been the same since NVTX 3 began:
 * programs are built with a copy of the header, and newer tools must understand it.
 */
#ifndef GPC_PRELOAD_NVTX_ABI_H
#define GPC_PRELOAD_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <wchar.h>

typedef void (*gpc_nvtx_function)(void);

/* A function of the program's copy of NVTX: returns the table with this number. */
typedef const void *(*gpc_nvtx_find_table)(uint32_t table);

#define GPC_NVTX_TABLE_CALLBACKS 1

struct gpc_nvtx_callbacks {
	size_t struct_size;
	/* For 0 < i < *ret_n, NVTX calls the function i of the module through *(*ret_functions)[i]. */
	int (*find_functions)(int module, gpc_nvtx_function ***ret_functions, unsigned *ret_n);
};

#define GPC_NVTX_MODULE_CORE  1 /* functions without a domain */
#define GPC_NVTX_MODULE_CORE2 5 /* functions with a domain */

#define GPC_NVTX_CORE_PUSH_EX 8
#define GPC_NVTX_CORE_PUSH_A  9
#define GPC_NVTX_CORE_PUSH_W  10
#define GPC_NVTX_CORE_POP     11

#define GPC_NVTX_CORE2_PUSH_EX           4
#define GPC_NVTX_CORE2_POP               5
#define GPC_NVTX_CORE2_REGISTER_STRING_A 10
#define GPC_NVTX_CORE2_REGISTER_STRING_W 11
#define GPC_NVTX_CORE2_CREATE_DOMAIN_A   12
#define GPC_NVTX_CORE2_CREATE_DOMAIN_W   13

#define GPC_NVTX_MESSAGE_ASCII      1
#define GPC_NVTX_MESSAGE_UNICODE    2
#define GPC_NVTX_MESSAGE_REGISTERED 3

/* nvtxEventAttributes_t */
struct gpc_nvtx_attributes {
	uint16_t version;
	uint16_t size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type;
	int32_t reserved;
	uint64_t payload;
	int32_t message_type;
	union {
		const char *ascii;
		const wchar_t *unicode;
		const void *registered;
	} message;
};

/* The program's copy of NVTX calls this at its first use.  Returns 0 if we record no ranges. */
int InitializeInjectionNvtx2(gpc_nvtx_find_table find_table);

#endif
