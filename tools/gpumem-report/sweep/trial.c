/* SPDX-License-Identifier: Apache-2.0 */
/* Line by line, of any length: a command with its arguments is one. */
#include "tools/gpumem-report/sweep/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool gpc_trial_read(
	const char *path, void *arg, bool (*take)(void *arg, const char *key, char *text))
{
	FILE *file = fopen(path, "re");
	bool is_good = file != NULL;
	char *line = NULL;
	size_t size = 0;

	while (is_good && getline(&line, &size, file) >= 0) {
		char *text = strchr(line, '=');

		line[strcspn(line, "\n")] = '\0';
		if (!text)
			continue;
		*text++ = '\0';
		is_good = take(arg, line, text);
	}
	free(line);
	if (file)
		(void)fclose(file);
	return is_good;
}
