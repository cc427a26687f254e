/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup is json-c's, in the object "addresses".  Symbols and names of a wrong type are skipped. */
#include "tools/gpumem-report/symbols/pack_file.h"

#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "format/memory.h"
#include "tools/gpumem-report/report.h"

#define MOST_BYTES (256 << 20)

struct json_object *gpc_pack_identity(const struct gpc_recording *recording)
{
	const struct gpucache_header *header = &recording->header;
	struct json_object *object = json_object_new_object();

	json_object_object_add(object, "pid", json_object_new_uint64(header->pid));
	json_object_object_add(object, "start_ticks", json_object_new_uint64(header->start_ticks));
	json_object_object_add(
		object, "start_realtime_ns", json_object_new_uint64(header->start_realtime_ns));
	json_object_object_add(object, "host", json_object_new_string(header->host));
	return object;
}

static bool is_of(struct json_object *root, const struct gpc_recording *recording)
{
	struct json_object *identity = gpc_pack_identity(recording);
	struct json_object *found = NULL;
	struct json_object *schema = NULL;
	bool is_it = json_object_object_get_ex(root, "schema", &schema) &&
		     json_object_is_type(schema, json_type_string) &&
		     strcmp(json_object_get_string(schema), GPC_PACK_SCHEMA) == 0 &&
		     json_object_object_get_ex(root, "recording", &found) &&
		     json_object_equal(found, identity);

	json_object_put(identity);
	return is_it;
}

struct json_object *gpc_pack_open(const struct gpc_recording *recording)
{
	struct json_object *root = NULL;
	struct json_object *addresses = NULL;
	char *path = gpc_print("%s" GPC_PACK_SUFFIX, recording->path);
	bool is_usable;
	struct stat st;

	if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MOST_BYTES)
		root = json_object_from_file(path);
	is_usable = root && is_of(root, recording) &&
		    json_object_object_get_ex(root, "addresses", &addresses) &&
		    json_object_is_type(addresses, json_type_object);
	if (is_usable)
		(void)json_object_get(addresses);
	else if (root)
		gpc_complain("%s: not the symbols of this recording; not used", path);
	json_object_put(root);
	free(path);
	return is_usable ? addresses : NULL;
}

/* Returns a copy of the string at `key`, cleaned for a terminal; NULL: no string there. */
static char *copy_text(struct json_object *object, const char *key)
{
	struct json_object *text = NULL;
	char *copy;

	if (!json_object_object_get_ex(object, key, &text) ||
		!json_object_is_type(text, json_type_string))
		return NULL;
	copy = gpc_copy(json_object_get_string(text));
	gpc_text_clean(copy);
	return copy;
}

struct gpc_symbol_list gpc_pack_find(const struct json_object *pack, uint64_t address)
{
	struct gpc_symbol_list list = { 0 };
	struct json_object *array = NULL;
	char key[24];
	size_t n;

	snprintf(key, sizeof key, "0x%llx", (unsigned long long)address);
	if (!json_object_object_get_ex(pack, key, &array) ||
		!json_object_is_type(array, json_type_array))
		return list;
	n = json_object_array_length(array);
	list.rows = gpc_new(n, sizeof *list.rows);
	for (size_t i = 0; i < n; i++) {
		struct json_object *row = json_object_array_get_idx(array, i);
		struct json_object *line = NULL;

		if (!json_object_is_type(row, json_type_object))
			continue;
		list.rows[list.n].function = copy_text(row, "function");
		list.rows[list.n].file = copy_text(row, "file");
		if (json_object_object_get_ex(row, "line", &line))
			list.rows[list.n].line = (uint32_t)json_object_get_int64(line);
		list.n++;
	}
	if (list.n == 0) {
		free(list.rows);
		list.rows = NULL;
	}
	return list;
}
