/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `pack`: writes the symbols of all recorded addresses next to the recording, for machines without the program's files:
 * when a pod ends, its image is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "format/array.h"
#include "tools/gpumem-report/report.h"
#include "tools/gpumem-report/symbols/pack_file.h"

struct addresses {
	uint64_t *all;
	size_t n;
};

/* Collects the return addresses of all stacks, sorted, each once. */
static void collect(struct addresses *addresses, const struct gpc_recording *rec)
{
	struct gpc_stack_view view;
	size_t most = 0;
	size_t last = 0;

	for (size_t i = 0; i < rec->n_stacks; i++)
		if (gpc_recording_find_stack(rec, rec->stacks[i].id, &view))
			most += view.n_native;
	*addresses = (struct addresses){ .all = gpc_new(most, sizeof *addresses->all) };
	for (size_t i = 0; i < rec->n_stacks; i++) {
		if (!gpc_recording_find_stack(rec, rec->stacks[i].id, &view))
			continue;
		for (unsigned k = 0; k < view.n_native && addresses->n < most; k++)
			addresses->all[addresses->n++] = view.native[k];
	}
	qsort(addresses->all, addresses->n, sizeof *addresses->all, gpc_array_by_number);
	for (size_t i = 1; i < addresses->n; i++)
		if (addresses->all[i] != addresses->all[last])
			addresses->all[++last] = addresses->all[i];
	addresses->n = addresses->n ? last + 1 : 0;
}

/* The symbols of one address; NULL if it has none. */
static struct json_object *symbols_json(struct gpc_symbols *symbols, uint64_t address)
{
	const struct gpc_symbol_list *list = gpc_symbols_find(symbols, address);
	struct json_object *array = NULL;

	if (list->n && list->rows[list->n - 1].function)
		array = json_object_new_array();
	for (size_t i = 0; array && i < list->n; i++) {
		const struct gpc_symbol *symbol = &list->rows[i];
		struct json_object *row = json_object_new_object();

		json_object_object_add(row, "function",
			symbol->function ? json_object_new_string(symbol->function) : NULL);
		if (symbol->file) {
			json_object_object_add(row, "file", json_object_new_string(symbol->file));
			json_object_object_add(row, "line", json_object_new_uint64(symbol->line));
		}
		json_object_array_add(array, row);
	}
	return array;
}

/* Creates the default output, next to the recording; returns NULL after a message. */
static FILE *open_beside(const struct gpc_report *report, char **ret_path)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (report->options->force ? O_TRUNC : O_EXCL);
	FILE *out = NULL;
	int fd;

	*ret_path = gpc_print("%s" GPC_PACK_SUFFIX, report->recording->path);
	fd = open(*ret_path, flags, 0600);
	if (fd >= 0)
		out = fdopen(fd, "w");
	if (!out && errno == EEXIST)
		gpc_complain("%s exists; -f overwrites it", *ret_path);
	else if (!out)
		gpc_complain("%s: %s", *ret_path, strerror(errno));
	return out;
}

static bool write_file(FILE *out, struct json_object *root)
{
	return fputs(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN), out) >= 0 &&
	       fputc('\n', out) != EOF && fflush(out) == 0;
}

static enum gpc_exit write_pack(
	struct gpc_report *report, const struct addresses *addresses, struct gpc_symbols *symbols)
{
	struct json_object *root = json_object_new_object();
	struct json_object *all = json_object_new_object();
	char *path = NULL;
	FILE *out = report->out;
	size_t n = 0;
	bool is_written;

	if (!report->options->output)
		out = open_beside(report, &path);
	json_object_object_add(root, "schema", json_object_new_string(GPC_PACK_SCHEMA));
	json_object_object_add(root, "recording", gpc_pack_identity(report->recording));
	for (size_t i = 0; out && i < addresses->n; i++) {
		struct json_object *array = symbols_json(symbols, addresses->all[i]);
		char key[24];

		if (!array)
			continue;
		snprintf(key, sizeof key, "0x%llx", (unsigned long long)addresses->all[i]);
		json_object_object_add(all, key, array);
		n++;
	}
	json_object_object_add(root, "addresses", all);
	is_written = out && write_file(out, root);
	if (path && out)
		is_written &= fclose(out) == 0;
	if (is_written)
		gpc_complain("%s: names of %zu of %zu addresses",
			path ? path : report->options->output, n, addresses->n);
	else if (out)
		gpc_complain("cannot write: %s", strerror(errno));
	json_object_put(root);
	free(path);
	return is_written ? GPC_EXIT_MADE : GPC_EXIT_IO;
}

enum gpc_exit gpc_cmd_pack(struct gpc_report *report)
{
	struct gpc_symbols *symbols =
		gpc_symbols_create(report->recording, &report->options->places);
	struct addresses addresses;
	enum gpc_exit code;

	collect(&addresses, report->recording);
	code = write_pack(report, &addresses, symbols);
	free(addresses.all);
	gpc_symbols_destroy(symbols);
	return code;
}
