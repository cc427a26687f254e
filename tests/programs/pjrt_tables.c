/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of XLA with nothing but its table, of version MAJOR.112 and of FNS functions. */
#include <stddef.h>

static struct {
	size_t size;
	void *extensions;
	size_t version_size;
	void *version_extensions;
	int major, minor;
	void *fns[FNS];
} table = { .size = sizeof table, .version_size = 24, .major = MAJOR, .minor = 112 };

void *GetPjrtApi(void);
void *own_table(void);

void *GetPjrtApi(void)
{
	return &table;
}

void *own_table(void)
{
	return &table;
}
