/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/host_memory.h"
#include "unit.h"

#define GIB (UINT64_C(1) << 30)

static char root[64];

static void put(const char *file, const char *text)
{
	char path[512];
	FILE *out;

	snprintf(path, sizeof path, "%s%s", root, file);
	for (char *at = path + strlen(root) + 1; (at = strchr(at, '/')); at++) {
		*at = '\0';
		assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
		*at = '/';
	}
	out = fopen(path, "w");
	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	fclose(out);
}

/* A host of 64 GiB, 32 of them available. */
static int make(void **state)
{
	snprintf(root, sizeof root, "/tmp/gpc-host-XXXXXX");
	if (!mkdtemp(root))
		return -1;
	put("/proc/meminfo",
		"MemTotal:       67108864 kB\nMemFree:         1048576 kB\n"
		"MemAvailable:   33554432 kB\n");
	return 0;
}

static int drop(void **state)
{
	char command[128];

	snprintf(command, sizeof command, "rm -r %s", root);
	return system(command);
}

FIXTURE(make, drop);

static void expect(uint64_t available, uint64_t room)
{
	struct gpc_host_memory memory = gpc_host_memory_read(root);

	assert_int_equal(memory.free_bytes, available);
	assert_int_equal(memory.room_bytes, room);
}

TEST(an_eighth_of_the_host_stays_free)
{
	expect(32 * GIB, 24 * GIB);
	put("/proc/meminfo", "MemTotal:       67108864 kB\nMemAvailable:    4194304 kB\n");
	expect(4 * GIB, 0);
}

TEST(an_old_kernel_does_not_estimate)
{
	put("/proc/meminfo", "MemTotal:       67108864 kB\nMemFree:        16777216 kB\n");
	expect(16 * GIB, 8 * GIB);
}

TEST(an_unreadable_host_has_nothing)
{
	put("/proc/meminfo", "MemTotal: many\n");
	expect(0, 0);
	put("/proc/meminfo", "");
	expect(0, 0);
}

TEST(the_tightest_group_of_version_2_counts)
{
	put("/proc/self/cgroup", "0::/jobs/night\n");
	put("/sys/fs/cgroup/jobs/night/memory.max", "max\n");
	put("/sys/fs/cgroup/jobs/night/memory.current", "1073741824\n");
	expect(32 * GIB, 24 * GIB);
	put("/sys/fs/cgroup/jobs/memory.max", "17179869184\n"); /* 16 GiB */
	put("/sys/fs/cgroup/jobs/memory.current", "8589934592\n");
	expect(8 * GIB, 6 * GIB);
	put("/sys/fs/cgroup/jobs/memory.stat", "anon 5\ninactive_file 4294967296\nslab 0\n");
	expect(12 * GIB, 10 * GIB);
	put("/sys/fs/cgroup/jobs/night/memory.max", "2147483648\n");
	expect(GIB, 768 * GPC_MIB);
}

TEST(a_group_of_version_1_counts_also_without_its_path)
{
	put("/proc/self/cgroup", "9:name=systemd:/a\n4:cpu,memory:/docker/17\n0::/\n");
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "8589934592\n");
	put("/sys/fs/cgroup/memory/memory.usage_in_bytes", "6442450944\n");
	put("/sys/fs/cgroup/memory/memory.stat",
		"inactive_file 1\ntotal_inactive_file 1073741824\n");
	expect(3 * GIB, 2 * GIB);
	/* No limit of version 1 is a very large one. */
	put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
	expect(32 * GIB, 24 * GIB);
}

TEST(odd_lines_set_no_limit)
{
	put("/proc/self/cgroup", "\n::\nmemory\n1:memory\n0::\n3:memory:");
	put("/sys/fs/cgroup/memory.max", "0\n");
	expect(32 * GIB, 24 * GIB);
}

TEST(a_full_group_leaves_nothing)
{
	put("/proc/self/cgroup", "0::/x\n");
	put("/sys/fs/cgroup/x/memory.max", "1000\n");
	put("/sys/fs/cgroup/x/memory.current", "2000\n");
	expect(0, 0);
}

TEST(this_host_has_memory)
{
	assert_true(gpc_host_memory_read("").free_bytes > 0);
}
