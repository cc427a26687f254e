/* SPDX-License-Identifier: Apache-2.0 */
/* Like a Python extension: opened with RTLD_LOCAL, its functions found by name; see torch.py. */
#include "runtime_calls.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT void c10_start(void);
EXPORT void c10_plain(void);
EXPORT void c10_async(void);
EXPORT void c10_mapped(void);
EXPORT void c10_hold(void);

static void *by_version(const char *name, unsigned version)
{
	enum cudaDriverEntryPointQueryResult found;
	void *function = NULL;

	OK(cudaGetDriverEntryPointByVersion(name, &function, version, cudaEnableDefault, &found));
	return function;
}

void c10_start(void)
{
	OK(cudaFree(NULL));
}

void c10_plain(void)
{
	runtime_plain();
}

void c10_async(void)
{
	runtime_async();
}

void c10_mapped(void)
{
	struct stack_driver cu;

#define X(symbol, name, version, parameters) \
	*(void **)(void *)&cu.symbol = by_version(name, version);
	STACK_TABLE(X)
#undef X
	stack_mapped(&cu);
}

void c10_hold(void)
{
	stack_hold();
}
