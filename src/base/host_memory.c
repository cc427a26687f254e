/* SPDX-License-Identifier: Apache-2.0 */
/* Walks from the group of this process to the root of each hierarchy: any group on the way may have the tightest limit. */
#include "base/host_memory.h"

#include <stdbool.h>
#include <string.h>

#include "base/bytes.h"
#include "base/io.h"
#include "base/saturating.h"
#include "base/text.h"

#define KEPT 8 /* one part in so many stays free */

/* How a version of control groups calls its files. */
struct hierarchy {
	const char *mount;
	const char *limit;
	const char *usage;
	const char *reclaimable; /* the line of memory.stat */
};

static const struct hierarchy version_1 = { "/sys/fs/cgroup/memory", "memory.limit_in_bytes",
	"memory.usage_in_bytes", "total_inactive_file " };
static const struct hierarchy version_2 = { "/sys/fs/cgroup", "memory.max", "memory.current",
	"inactive_file " };

/* The number at `at`, after spaces.  False: there is none, as in "max". */
static bool read_number(const char *at, uint64_t *ret_number)
{
	uint64_t number = 0;
	const char *start;

	while (*at == ' ')
		at++;
	for (start = at; *at >= '0' && *at <= '9'; at++)
		number = gpc_bytes_add(gpc_bytes_times(number, 10), (uint64_t)(*at - '0'));
	*ret_number = number;
	return at > start;
}

/* The number after `key` at the start of a line. */
static bool read_line(const char *text, const char *key, uint64_t *ret_number)
{
	size_t n = strlen(key);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, n) == 0)
			return read_number(line + n, ret_number);
	}
	return false;
}

static void bound(struct gpc_host_memory *memory, uint64_t total, uint64_t available)
{
	memory->free_bytes = gpc_smaller(memory->free_bytes, available);
	memory->room_bytes =
		gpc_smaller(memory->room_bytes, gpc_bytes_less(available, total / KEPT));
}

static bool read_host(const char *root, struct gpc_host_memory *memory)
{
	char path[512];
	char text[512];
	uint64_t total;
	uint64_t available;

	gpc_format(path, sizeof path, "%s/proc/meminfo", root);
	if (gpc_io_read_file(path, text, sizeof text) < 0 ||
		!read_line(text, "MemTotal:", &total) ||
		/* Kernels before 3.14 do not estimate it. */
		(!read_line(text, "MemAvailable:", &available) &&
			!read_line(text, "MemFree:", &available)))
		return false;
	bound(memory, gpc_bytes_times(total, GPC_KIB), gpc_bytes_times(available, GPC_KIB));
	return true;
}

/* The number that the file of a group begins with. */
static bool read_value(const char *group, const char *file, uint64_t *ret_number)
{
	char path[640];
	char text[32];

	gpc_format(path, sizeof path, "%s/%s", group, file);
	return gpc_io_read_file(path, text, sizeof text) > 0 && read_number(text, ret_number);
}

static void read_group(
	const struct hierarchy *version, const char *group, struct gpc_host_memory *memory)
{
	char path[640];
	char text[4096];
	uint64_t limit;
	uint64_t usage;
	uint64_t reclaimable = 0;

	if (!read_value(group, version->limit, &limit) ||
		!read_value(group, version->usage, &usage))
		return;
	gpc_format(path, sizeof path, "%s/memory.stat", group);
	if (gpc_io_read_file(path, text, sizeof text) > 0)
		(void)read_line(text, version->reclaimable, &reclaimable);
	bound(memory, limit, gpc_bytes_less(limit, gpc_bytes_less(usage, reclaimable)));
}

/* In a container the path may be that of the host, which is not mounted here: then the mount's root is the group. */
static void read_groups(const char *root, const struct hierarchy *version, const char *path,
	struct gpc_host_memory *memory)
{
	char group[512];
	size_t n_mount = gpc_format(group, sizeof group, "%s%s", root, version->mount);
	size_t n_path = strcspn(path, "\n");

	if (n_path < sizeof group - n_mount) {
		memcpy(group + n_mount, path, n_path);
		group[n_mount + n_path] = '\0';
	}
	for (;;) {
		char *slash = strrchr(group, '/');

		read_group(version, group, memory);
		if (!slash || (size_t)(slash - group) < n_mount)
			return;
		*slash = '\0';
	}
}

/* A line is NUMBER:CONTROLLERS:PATH; of version 2 the number is 0, and there are no controllers. */
static void read_hierarchy(const char *root, const char *line, struct gpc_host_memory *memory)
{
	const char *controllers = strchr(line, ':');
	const char *path = controllers ? strchr(controllers + 1, ':') : NULL;
	const char *memory_word = controllers ? strstr(controllers, "memory") : NULL;

	if (!path || path > line + strcspn(line, "\n"))
		return;
	if (strncmp(line, "0::", 3) == 0)
		read_groups(root, &version_2, path + 1, memory);
	else if (memory_word && memory_word < path)
		read_groups(root, &version_1, path + 1, memory);
}

struct gpc_host_memory gpc_host_memory_read(const char *root)
{
	struct gpc_host_memory memory = { UINT64_MAX, UINT64_MAX };
	char path[512];
	char text[4096];

	if (!read_host(root, &memory))
		return (struct gpc_host_memory){ 0 };
	gpc_format(path, sizeof path, "%s/proc/self/cgroup", root);
	if (gpc_io_read_file(path, text, sizeof text) > 0)
		for (const char *line = text; line && *line; line = strchr(line, '\n')) {
			line += *line == '\n';
			read_hierarchy(root, line, &memory);
		}
	return memory;
}
