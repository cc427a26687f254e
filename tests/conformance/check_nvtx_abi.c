/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares preload/nvtx_abi.h with the toolkit's nvtx3 headers.
 *
 * It only has to compile: gcc -fsyntax-only -I. -I$(CUDA_HOME)/include.
 */
#include <stddef.h>

#include "preload/nvtx_abi.h"

#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>

#define VALUE(ours, theirs) _Static_assert((ours) == (int)(theirs), #theirs)
#define TYPE(pointer, type) _Static_assert(_Generic(pointer, type : 1, default : 0), #type)
#define MEMBER(ours, theirs)                                                         \
	_Static_assert(offsetof(struct gpc_nvtx_attributes, ours) ==                 \
				       offsetof(nvtxEventAttributes_t, theirs) &&    \
			       sizeof(((struct gpc_nvtx_attributes *)0)->ours) ==    \
				       sizeof(((nvtxEventAttributes_t *)0)->theirs), \
		#theirs)

VALUE(GPC_NVTX_TABLE_CALLBACKS, NVTX_ETID_CALLBACKS);
VALUE(GPC_NVTX_MODULE_CORE, NVTX_CB_MODULE_CORE);
VALUE(GPC_NVTX_MODULE_CORE2, NVTX_CB_MODULE_CORE2);
VALUE(GPC_NVTX_CORE_PUSH_EX, NVTX_CBID_CORE_RangePushEx);
VALUE(GPC_NVTX_CORE_PUSH_A, NVTX_CBID_CORE_RangePushA);
VALUE(GPC_NVTX_CORE_PUSH_W, NVTX_CBID_CORE_RangePushW);
VALUE(GPC_NVTX_CORE_POP, NVTX_CBID_CORE_RangePop);
VALUE(GPC_NVTX_CORE2_PUSH_EX, NVTX_CBID_CORE2_DomainRangePushEx);
VALUE(GPC_NVTX_CORE2_POP, NVTX_CBID_CORE2_DomainRangePop);
VALUE(GPC_NVTX_CORE2_REGISTER_STRING_A, NVTX_CBID_CORE2_DomainRegisterStringA);
VALUE(GPC_NVTX_CORE2_REGISTER_STRING_W, NVTX_CBID_CORE2_DomainRegisterStringW);
VALUE(GPC_NVTX_CORE2_CREATE_DOMAIN_A, NVTX_CBID_CORE2_DomainCreateA);
VALUE(GPC_NVTX_CORE2_CREATE_DOMAIN_W, NVTX_CBID_CORE2_DomainCreateW);
VALUE(GPC_NVTX_MESSAGE_ASCII, NVTX_MESSAGE_TYPE_ASCII);
VALUE(GPC_NVTX_MESSAGE_UNICODE, NVTX_MESSAGE_TYPE_UNICODE);
VALUE(GPC_NVTX_MESSAGE_REGISTERED, NVTX_MESSAGE_TYPE_REGISTERED);

_Static_assert(sizeof(struct gpc_nvtx_attributes) == sizeof(nvtxEventAttributes_t), "attributes");
MEMBER(version, version);
MEMBER(size, size);
MEMBER(message_type, messageType);
MEMBER(message, message);

_Static_assert(sizeof(struct gpc_nvtx_callbacks) == sizeof(NvtxExportTableCallbacks), "callbacks");
_Static_assert(offsetof(struct gpc_nvtx_callbacks, find_functions) ==
		       offsetof(NvtxExportTableCallbacks, GetModuleFunctionTable),
	"callbacks");

/* The types of called functions; handles are pointers to opaque structs. */
TYPE((gpc_nvtx_function *)0, NvtxFunctionPointer *);
TYPE((gpc_nvtx_function ***)0, NvtxFunctionTable *);
TYPE((gpc_nvtx_find_table *)0, NvtxGetExportTableFunc_t *);
TYPE((int (*)(const char *))0, nvtxRangePushA_impl_fntype);
TYPE((int (*)(const wchar_t *))0, nvtxRangePushW_impl_fntype);
TYPE((int (*)(const nvtxEventAttributes_t *))0, nvtxRangePushEx_impl_fntype);
TYPE((int (*)(void))0, nvtxRangePop_impl_fntype);
TYPE((int (*)(nvtxDomainHandle_t, const nvtxEventAttributes_t *))0,
	nvtxDomainRangePushEx_impl_fntype);
TYPE((int (*)(nvtxDomainHandle_t))0, nvtxDomainRangePop_impl_fntype);
TYPE((nvtxStringHandle_t(*)(nvtxDomainHandle_t, const char *))0,
	nvtxDomainRegisterStringA_impl_fntype);
TYPE((nvtxStringHandle_t(*)(nvtxDomainHandle_t, const wchar_t *))0,
	nvtxDomainRegisterStringW_impl_fntype);
TYPE((nvtxDomainHandle_t(*)(const char *))0, nvtxDomainCreateA_impl_fntype);
TYPE((nvtxDomainHandle_t(*)(const wchar_t *))0, nvtxDomainCreateW_impl_fntype);
#endif
