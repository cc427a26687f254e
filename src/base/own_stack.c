/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The switch is a function in assembly that saves the stack pointer in the frame pointer, which the callee preserves.  So
 * rules for unwinders describe it by the frame pointer, and cross from one stack to the other.
 */
#include "base/own_stack.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/metamem.h"

#define GUARD_BYTES 65536u /* the largest page of aarch64 */
#define WHOLE_BYTES (GUARD_BYTES + GPC_OWN_STACK_BYTES)

#if defined(__x86_64__)
__asm__(".text\n"
	".hidden gpc_own_stack_switch\n"
	".globl gpc_own_stack_switch\n"
	".type gpc_own_stack_switch, @function\n"
	"gpc_own_stack_switch:\n"
	"	.cfi_startproc\n"
	"	endbr64\n"
	"	pushq %rbp\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset %rbp, -16\n"
	"	movq %rsp, %rbp\n"
	"	.cfi_def_cfa_register %rbp\n"
	"	movq %rdx, %rsp\n"
	"	movq %rdi, %rax\n"
	"	movq %rsi, %rdi\n"
	"	call *%rax\n"
	"	leave\n"
	"	.cfi_def_cfa %rsp, 8\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size gpc_own_stack_switch, . - gpc_own_stack_switch\n");
#elif defined(__aarch64__)
__asm__(".text\n"
	".hidden gpc_own_stack_switch\n"
	".globl gpc_own_stack_switch\n"
	".type gpc_own_stack_switch, %function\n"
	"gpc_own_stack_switch:\n"
	"	.cfi_startproc\n"
	"	hint #34\n"
	"	stp x29, x30, [sp, #-16]!\n"
	"	.cfi_def_cfa_offset 16\n"
	"	.cfi_offset x29, -16\n"
	"	.cfi_offset x30, -8\n"
	"	mov x29, sp\n"
	"	.cfi_def_cfa_register x29\n"
	"	mov sp, x2\n"
	"	mov x9, x0\n"
	"	mov x0, x1\n"
	"	blr x9\n"
	"	mov sp, x29\n"
	"	.cfi_def_cfa_register sp\n"
	"	ldp x29, x30, [sp], #16\n"
	"	.cfi_def_cfa_offset 0\n"
	"	.cfi_restore x29\n"
	"	.cfi_restore x30\n"
	"	ret\n"
	"	.cfi_endproc\n"
	".size gpc_own_stack_switch, . - gpc_own_stack_switch\n");
#else
#define gpc_own_stack_switch(function, arg, end) ((void)(end), (function)(arg))
#endif

#ifndef gpc_own_stack_switch
/* Calls function(arg) on the stack that ends at `end`. */
void gpc_own_stack_switch(void (*function)(void *arg), void *arg, void *end);
#endif

static _Atomic(char *) kept;
static _Thread_local bool is_here;

static char *take(void)
{
	char *pages = atomic_exchange(&kept, NULL);

	if (pages)
		return pages;
	pages = gpc_metamem_map(WHOLE_BYTES);
	if (pages)
		(void)mprotect(pages, GUARD_BYTES, PROT_NONE);
	return pages;
}

static void give_back(char *pages)
{
	char *none = NULL;

	if (!atomic_compare_exchange_strong(&kept, &none, pages))
		gpc_metamem_unmap(pages, WHOLE_BYTES);
}

void gpc_own_stack_run(void (*function)(void *arg), void *arg)
{
	char *pages = is_here ? NULL : take();
	sigset_t all;
	sigset_t old;

	if (!pages) {
		function(arg);
		return;
	}
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	is_here = true;
	gpc_own_stack_switch(function, arg, pages + WHOLE_BYTES);
	is_here = false;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	give_back(pages);
}
