/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors by which a program gets the driver's functions, and how it gets ours there instead.
 *
 *   direct link              our exported function precedes the driver's
 *   dlsym                    below: answers for the names of symbols.def and for XLA's table (pjrt.h), and jumps to the
 *                            next dlsym for all others
 *   cuGetProcAddress         both versions below; the runtime library looks up both, and uses one
 *   cudaGetDriverEntryPoint  the runtime library answers it by cuGetProcAddress
 *
 * libc's dlsym finds out by its return address which library called it, for RTLD_NEXT and RTLD_DEFAULT.  So our dlsym
 * must reach it by a jump, with the caller's return address, and is written in assembly.  Our own lookups call
 * gpc_real_dlsym_call.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "preload/pjrt.h"
#include "preload/real.h"

EXPORT void *dlsym(void *restrict handle, const char *restrict name);

/* The target of the jump.  gpc_dlsym_is_ours writes it before the first one. */
void *(*gpc_next_dlsym)(void *, const char *);

/* True if gpc_dlsym_ours is to answer.  The assembly below calls both with the arguments of dlsym. */
bool gpc_dlsym_is_ours(void *handle, const char *name);
void *gpc_dlsym_ours(void *handle, const char *name);

/*
 * Finds the dlsym of another interposer loaded after us, else libc's.  The lookup needs libc's plain dlsym: the
 * versioned one of gpc_find_next_dlsym finds only libc's, because other interposers' symbols have no version.
 */
static void *(*find_behind_us(void))(void *, const char *)
{
	void *(*of_libc)(void *, const char *) = gpc_find_next_dlsym();
	void *(*behind)(void *, const char *) = NULL;

	if (of_libc)
		*(void **)(void *)&behind = of_libc(RTLD_NEXT, "dlsym");
	return behind ? behind : of_libc;
}

bool gpc_dlsym_is_ours(void *handle, const char *name)
{
	void *ours;
	void *real;

	if (!gpc_next_dlsym)
		gpc_next_dlsym = find_behind_us();
	/* XLA's plugin, which is looked up in itself. */
	if (name && name[0] == 'G' && strcmp(name, GPC_PJRT_NAME) == 0)
		return handle != RTLD_NEXT && handle != RTLD_DEFAULT;
	/* Every name of the driver starts with "cu" and a capital, unlike "cudnnCreate" and "cublasCreate". */
	if (!name || name[0] != 'c' || name[1] != 'u' || name[2] < 'A' || name[2] > 'Z')
		return false;
	return gpc_real_row(name, &ours, &real);
}

/* True if both addresses are in the same object. */
static bool is_same_object(const void *a, const void *b)
{
	Dl_info of_a;
	Dl_info of_b;

	return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}

/* Reached by a jump, so the return address is still that of dlsym's caller. */
void *gpc_dlsym_ours(void *handle, const char *name)
{
	void *ours = NULL;
	void *real = NULL;
	void *pointer;

	if (name[0] == 'G')
		return gpc_pjrt_exchange(gpc_real_dlsym_call(handle, name));
	/* Our own lookups come first, so that dlerror reports on the caller's lookup. */
	(void)gpc_real_find();
	pointer = gpc_real_dlsym_call(handle, name);
	if (!pointer)
		return NULL;
	(void)gpc_real_row(name, &ours, &real);
	/* Without a driver the caller must not find our function: the lookup after us fails, and sets dlerror. */
	if (pointer == ours)
		return real ? ours : gpc_real_dlsym_call(RTLD_NEXT, name);
	/*
	 * The caller asked for the function after itself, but we searched after ourselves.  A caller that is a wrapper
	 * like us, loaded after us, would get its own function, and call itself for ever.
	 */
	if (handle == RTLD_NEXT && is_same_object(pointer, __builtin_return_address(0)))
		return real ? ours : NULL;
	return gpc_real_exchange(pointer);
}

#if defined(__x86_64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rdi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	pushq %rsi\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	subq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset 8\n"
	"	call gpc_dlsym_is_ours\n"
	"	addq $8, %rsp\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rsi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	popq %rdi\n"
	"	.cfi_adjust_cfa_offset -8\n"
	"	testb %al, %al\n"
	"	jne 1f\n"
	"	jmp *gpc_next_dlsym(%rip)\n"
	"1:	jmp gpc_dlsym_ours\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
/* The jump goes through x16: libc may be compiled for BTI, and then accepts jumps only from x16 and x17. */
#elif defined(__aarch64__)
__asm__(".text\n"
	".globl dlsym\n"
	".type dlsym, %function\n"
	"dlsym:\n"
	"	.cfi_startproc\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	.cfi_def_cfa_offset 32\n"
	"	.cfi_offset 29, -32\n"
	"	.cfi_offset 30, -24\n"
	"	stp x0, x1, [sp, #16]\n"
	"	bl gpc_dlsym_is_ours\n"
	"	mov w9, w0\n"
	"	ldp x0, x1, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	.cfi_restore 29\n"
	"	.cfi_restore 30\n"
	"	.cfi_def_cfa_offset 0\n"
	"	tbnz w9, #0, 1f\n"
	"	adrp x16, gpc_next_dlsym\n"
	"	ldr x16, [x16, #:lo12:gpc_next_dlsym]\n"
	"	br x16\n"
	"1:	b gpc_dlsym_ours\n"
	"	.cfi_endproc\n"
	".size dlsym, .-dlsym\n");
#else
#error "dlsym needs a tail jump: add the few lines for this architecture"
#endif

CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
	CUresult result = real_cuGetProcAddress(symbol, pfn, cudaVersion, flags);

	if (result == CUDA_SUCCESS && pfn && *pfn)
		*pfn = gpc_real_exchange_answer(symbol, *pfn, cudaVersion, flags);
	return result;
}

CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
	CUdriverProcAddressQueryResult *symbolStatus)
{
	CUresult result = real_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, symbolStatus);

	if (result == CUDA_SUCCESS && pfn && *pfn)
		*pfn = gpc_real_exchange_answer(symbol, *pfn, cudaVersion, flags);
	return result;
}
