/* SPDX-License-Identifier: Apache-2.0 */
/* A module's parts have the distances that its file gives them, and no other module lies between them. */
#include "base/module.h"

#include <link.h>
#include <string.h>

#include "base/text.h"

struct look {
	uintptr_t address;
	const char *const *starts;
	struct gpc_module found;
};

bool gpc_module_file_begins(const char *path, const char *const starts[])
{
	const char *file = gpc_base_name(path);

	for (; *starts; starts++)
		if (strncmp(file, *starts, strlen(*starts)) == 0)
			return true;
	return false;
}

static int look_at(struct dl_phdr_info *module, size_t size, void *arg)
{
	struct look *look = arg;
	uintptr_t start = UINTPTR_MAX;
	uintptr_t end = 0;

	(void)size;
	for (int i = 0; i < module->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &module->dlpi_phdr[i];
		uintptr_t from = module->dlpi_addr + part->p_vaddr;

		if (part->p_type == PT_LOAD) {
			start = from < start ? from : start;
			end = from + part->p_memsz > end ? from + part->p_memsz : end;
		}
	}
	if (look->address < start || look->address >= end)
		return 0;
	look->found = (struct gpc_module){ start, end,
		gpc_module_file_begins(module->dlpi_name, look->starts) };
	return 1;
}

struct gpc_module gpc_module_of(const void *address, const char *const starts[])
{
	struct look look = { .address = (uintptr_t)address, .starts = starts };

	(void)dl_iterate_phdr(look_at, &look);
	return look.found;
}
