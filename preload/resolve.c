/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The doors: how a program that does not link libcuda gets the driver's functions, and gets ours instead.
 *
 *   direct link              our exported function precedes the driver's
 *   dlsym                    below: exact names of symbols.def; everything else is passed on by a jump
 *   cuGetProcAddress         both versions below; the runtime library looks them up separately, and uses the answer
 *   cudaGetDriverEntryPoint  the runtime library answers it by cuGetProcAddress
 *
 * RTLD_NEXT and RTLD_DEFAULT depend on the caller's return address, so a lookup that is not ours must be a jump, not a
 * call: hence the few lines of assembly.  The caller's handle is kept.  Names match exactly.  None of our own lookups
 * goes through the public dlsym.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>

#include "preload/real.h"

EXPORT void *dlsym(void *restrict handle, const char *restrict name);

/* The jump's target; written by gpc_dlsym_is_ours before the first jump. */
void *(*gpc_next_dlsym)(void *, const char *);

/* True if gpc_dlsym_ours should answer.  Called by the assembly below with dlsym's own arguments. */
bool gpc_dlsym_is_ours(void *handle, const char *name);
void *gpc_dlsym_ours(void *handle, const char *name);

/*
 * The dlsym of another interposer loaded after us, else libc's.  Found by libc's plain dlsym: the versioned lookup of
 * gpc_find_next_dlsym would skip other interposers.
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

	(void)handle;
	if (!gpc_next_dlsym)
		gpc_next_dlsym = find_behind_us();
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

	/* First, so that a later dlerror is about the caller's own lookup. */
	(void)gpc_real_find();
	pointer = gpc_real_dlsym_call(handle, name);
	if (!pointer)
		return NULL;
	(void)gpc_real_row(name, &ours, &real);
	/* Without a driver our function must not pretend that there is one.  The lookup after us sets dlerror, too. */
	if (pointer == ours)
		return real ? ours : gpc_real_dlsym_call(RTLD_NEXT, name);
	/*
	 * RTLD_NEXT means after the caller, but we searched after ourselves: a wrapper like us, loaded after us, would
	 * be given its own function and recurse for ever.
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
/* By x16, from which a BTI-guarded page of libc accepts a jump. */
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
