/* SPDX-License-Identifier: Apache-2.0 */
/* Asks access() for the program in each folder of PATH, then in those beside the file that this code was loaded from. */
#include "runtime/process/report_command.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/text.h"

#define NAME "gpumem-report"

#define MAX_PATH 512

/* True if path[0 .. len) is a folder with the program. */
static bool has_program(const char *path, size_t len, const char *below)
{
	GPC_TEXT(file, MAX_PATH);

	gpc_text_add(&file, "%.*s/%s" NAME, (int)len, path, below);
	return len > 0 && !file.cut && access(file.buf, X_OK) == 0;
}

static bool is_in_path(void)
{
	const char *folders = gpc_env_get("PATH");

	while (folders) {
		size_t len = strcspn(folders, ":");

		if (has_program(folders, len, ""))
			return true;
		folders = folders[len] ? folders + len + 1 : NULL;
	}
	return false;
}

void gpc_report_command_find(char *buf, size_t size)
{
	/* Built: beside the library.  Installed: lib/libgpucache.so, bin/gpumem-report. */
	static const char *const places[] = { "", "../bin/" };
	const char *slash;
	Dl_info info;

	gpc_format(buf, size, "%s", NAME);
	if (is_in_path() || !dladdr((const void *)(uintptr_t)gpc_report_command_find, &info) ||
		!info.dli_fname)
		return;
	slash = strrchr(info.dli_fname, '/');
	for (size_t i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
		struct gpc_text path = gpc_text_init(buf, size);

		if (!has_program(info.dli_fname, (size_t)(slash - info.dli_fname), places[i]))
			continue;
		gpc_text_add(&path, "%.*s/%s" NAME, (int)(slash - info.dli_fname), info.dli_fname,
			places[i]);
		if (!path.cut && gpc_text_is_plain(buf))
			return;
	}
	gpc_format(buf, size, "%s", NAME);
}
