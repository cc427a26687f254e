/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/export/ipc_registry.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "unit.h"

/* Two places of its own for each test: top/first and top/second. */
static char top[] = "/tmp/gpucache_test_XXXXXX";
static char paths[GPC_IPC_N_PLACES][64];
static const char *const places[GPC_IPC_N_PLACES] = { paths[0], paths[1] };

static struct gpc_ipc_registry registry;
static const struct gpc_ipc_target target = {
	.handle = { .reserved = "a handle of the driver" }, .offset = 1536, .size = 4096
};

static int set_up(void **state)
{
	strcpy(top + sizeof top - 7, "XXXXXX");
	if (!mkdtemp(top))
		return -1;
	snprintf(paths[0], sizeof paths[0], "%s/first", top);
	snprintf(paths[1], sizeof paths[1], "%s/second", top);
	gpc_ipc_registry_places = places;
	memset(&registry, 0, sizeof registry);
	return 0;
}

static int tear_down(void **state)
{
	char command[64];

	gpc_ipc_registry_fini(&registry, false);
	gpc_ipc_registry_places = NULL;
	snprintf(command, sizeof command, "rm -rf %s", top);
	return system(command);
}

FIXTURE(set_up, tear_down);

/* The path of a slot's file in the place with this number. */
static const char *path_of(unsigned place, unsigned slot)
{
	static char path[128];

	snprintf(path, sizeof path, "%s/ipc-%u", paths[place], slot);
	return path;
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

static CUipcMemHandle add(struct gpc_ipc_registry *to, uint32_t entry)
{
	CUipcMemHandle tag;

	assert_int_equal(gpc_ipc_registry_add(to, entry, &target, &tag), GPC_OK);
	return tag;
}

static void assert_leads_there(const CUipcMemHandle *tag)
{
	struct gpc_ipc_target found = { .size = 0 };

	assert_int_equal(gpc_ipc_registry_find(tag, &found), GPC_OK);
	assert_memory_equal(&found, &target, sizeof found);
}

static void assert_leads_nowhere(const CUipcMemHandle *tag)
{
	struct gpc_ipc_target found = { .size = 77 };

	assert_int_equal(gpc_ipc_registry_find(tag, &found), GPC_NOT_FOUND);
	assert_int_equal(found.size, 77);
}

TEST(a_tag_leads_to_what_it_stands_for)
{
	CUipcMemHandle first = add(&registry, 0);
	CUipcMemHandle last = add(&registry, GPC_IPC_MAX_ENTRIES - 1);

	assert_true(gpc_ipc_is_tag(&first));
	assert_false(gpc_ipc_is_tag(&target.handle));
	assert_memory_not_equal(&first, &last, sizeof first);
	assert_leads_there(&first);
	assert_leads_there(&last);
	gpc_ipc_registry_remove(&registry, 0);
	assert_leads_nowhere(&first);
	assert_leads_there(&last);
}

TEST(an_entry_that_is_used_again_is_not_what_the_old_tag_stands_for)
{
	CUipcMemHandle old = add(&registry, 5);
	CUipcMemHandle new;

	gpc_ipc_registry_remove(&registry, 5);
	new = add(&registry, 5);
	assert_leads_nowhere(&old);
	assert_leads_there(&new);
}

static size_t size_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return (size_t)st.st_size;
}

/* A link in the name of a slot leads to a file of this user. */
TEST(a_slot_that_is_a_link_is_neither_written_nor_read)
{
	char treasure[96];
	CUipcMemHandle tag;
	FILE *file;

	snprintf(treasure, sizeof treasure, "%s/treasure", top);
	file = fopen(treasure, "w");
	assert_non_null(file);
	assert_int_equal(fputs("precious", file) >= 0, 1);
	fclose(file);
	assert_int_equal(mkdir(paths[0], 0700), 0);
	assert_int_equal(symlink(treasure, path_of(0, 0)), 0);
	tag = add(&registry, 0);
	assert_int_equal(registry.slot, 1);
	assert_int_equal(size_of(treasure), strlen("precious"));
	/* The way of a reader: the same content, by a link. */
	assert_int_equal(rename(path_of(0, 1), treasure), 0);
	assert_int_equal(symlink(treasure, path_of(0, 1)), 0);
	assert_leads_nowhere(&tag);
}

TEST(the_file_goes_with_the_process)
{
	CUipcMemHandle tag = add(&registry, 0);

	assert_true(is_there(path_of(0, 0)));
	gpc_ipc_registry_fini(&registry, false);
	assert_false(is_there(path_of(0, 0)));
	assert_leads_nowhere(&tag);
	gpc_ipc_registry_fini(&registry, false); /* twice is once */
}

TEST(a_child_of_fork_leaves_the_file)
{
	CUipcMemHandle tag = add(&registry, 0);
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		gpc_ipc_registry_fini(&registry, true);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_leads_there(&tag);
}

TEST(processes_have_slots_of_their_own)
{
	struct gpc_ipc_registry other = { 0 };
	CUipcMemHandle a = add(&registry, 3);
	CUipcMemHandle b = add(&other, 3);

	assert_int_equal(registry.slot, 0);
	assert_int_equal(other.slot, 1);
	assert_leads_there(&a);
	assert_leads_there(&b);
	gpc_ipc_registry_fini(&other, false);
	assert_leads_there(&a);
	assert_leads_nowhere(&b);
}

TEST(the_slot_of_a_killed_process_is_taken_by_the_next)
{
	CUipcMemHandle old;
	CUipcMemHandle new;
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		CUipcMemHandle tag;

		if (gpc_ipc_registry_add(&registry, 0, &target, &tag) ||
			write(ends[1], &tag, sizeof tag) != sizeof tag)
			_exit(1);
		pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &old, sizeof old), sizeof old);
	assert_leads_there(&old);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_true(is_there(path_of(0, 0)));
	new = add(&registry, 0);
	assert_int_equal(registry.slot, 0);
	assert_leads_nowhere(&old);
	assert_leads_there(&new);
	close(ends[0]);
}

/* Every descriptor of ours is closed, and its number is that of a file of the program: "user-N". */
static int lose_descriptors(int ret_fds[8])
{
	int n = 0;

	for (int fd = 3; fd < 64; fd++) {
		char target_path[256];
		char link[64];
		ssize_t len;
		int own;

		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		len = readlink(link, target_path, sizeof target_path - 1);
		target_path[len > 0 ? len : 0] = '\0';
		if (strncmp(target_path, top, strlen(top)) != 0)
			continue;
		snprintf(link, sizeof link, "%s/user-%d", top, n);
		own = open(link, O_RDWR | O_CREAT | O_EXCL, 0600);
		assert_int_equal(dup2(own, fd), fd);
		close(own);
		ret_fds[n++] = fd;
	}
	return n;
}

/* All of them are open, and empty. */
static void assert_untouched(const int fds[], int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(lseek(fds[i], 0, SEEK_END), 0);
}

static void close_all(const int fds[], int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(close(fds[i]), 0);
}

TEST(a_file_of_the_program_that_got_our_number_is_not_written)
{
	CUipcMemHandle first = add(&registry, 0);
	CUipcMemHandle second;
	int fds[8];
	int n = lose_descriptors(fds);

	assert_true(n > 0);
	gpc_ipc_registry_remove(&registry, 7);
	second = add(&registry, 1);
	assert_untouched(fds, n);
	/* The same file, opened again: what was said before still holds. */
	assert_int_equal(registry.slot, 0);
	assert_leads_there(&first);
	assert_leads_there(&second);
	gpc_ipc_registry_remove(&registry, 0);
	assert_leads_nowhere(&first);
	close_all(fds, n);
}

TEST(at_the_end_a_file_of_the_program_is_neither_closed_nor_removed)
{
	char kept[128];
	int fds[8];
	int n;
	int fd;

	(void)add(&registry, 0);
	n = lose_descriptors(fds);
	/* A directory of the program, where a file has the name of our slot. */
	snprintf(kept, sizeof kept, "%s/ipc-0", top);
	assert_int_equal(close(open(kept, O_CREAT | O_WRONLY, 0600)), 0);
	fd = open(top, O_RDONLY | O_DIRECTORY);
	for (int i = 0; i < n; i++)
		assert_int_equal(dup2(fd, fds[i]), fds[i]);
	gpc_ipc_registry_fini(&registry, false);
	close_all(fds, n);
	close(fd);
	assert_true(is_there(kept));
	assert_false(is_there(path_of(0, 0)));
}

TEST(a_slot_that_another_process_took_meanwhile_is_left_to_it)
{
	struct gpc_ipc_registry other = { 0 };
	CUipcMemHandle lost = add(&registry, 0);
	CUipcMemHandle theirs;
	CUipcMemHandle ours;
	int fds[8];
	int n = lose_descriptors(fds);

	theirs = add(&other, 0);
	assert_int_equal(other.slot, 0);
	gpc_ipc_registry_remove(&registry, 0);
	ours = add(&registry, 0);
	assert_int_equal(registry.slot, 1);
	assert_untouched(fds, n);
	assert_leads_nowhere(&lost);
	assert_leads_there(&theirs);
	assert_leads_there(&ours);
	gpc_ipc_registry_fini(&registry, false);
	assert_leads_there(&theirs);
	gpc_ipc_registry_fini(&other, false);
	close_all(fds, n);
}

TEST(a_directory_that_others_can_enter_is_not_used)
{
	CUipcMemHandle tag;

	assert_int_equal(mkdir(paths[0], 0700), 0);
	assert_int_equal(chmod(paths[0], 0755), 0);
	tag = add(&registry, 0);
	assert_int_equal(registry.place, 1);
	assert_leads_there(&tag);
	/* Nor believed. */
	assert_int_equal(chmod(paths[1], 0777), 0);
	assert_leads_nowhere(&tag);
	assert_int_equal(chmod(paths[1], 0700), 0);
	assert_leads_there(&tag);
}

TEST(a_directory_of_somebody_else_is_not_used)
{
	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(paths[0], 0700), 0);
	assert_int_equal(chown(paths[0], 12345, 12345), 0);
	(void)add(&registry, 0);
	assert_int_equal(registry.place, 1);
}

TEST(a_link_in_place_of_a_directory_is_not_followed)
{
	assert_int_equal(symlink(top, paths[0]), 0);
	(void)add(&registry, 0);
	assert_int_equal(registry.place, 1);
}

TEST(what_is_no_file_of_ours_in_a_slot_is_passed_over)
{
	char victim[128];

	snprintf(victim, sizeof victim, "%s/victim", top);
	assert_int_equal(mkdir(paths[0], 0700), 0);
	close(open(victim, O_CREAT | O_WRONLY, 0600));
	assert_int_equal(symlink(victim, path_of(0, 0)), 0);
	assert_int_equal(mkdir(path_of(0, 1), 0700), 0);
	assert_int_equal(mkfifo(path_of(0, 2), 0600), 0);
	(void)add(&registry, 0);
	assert_int_equal(registry.slot, 3);
}

TEST(names_that_others_took_are_no_loss)
{
	struct gpc_ipc_registry other = { 0 };
	CUipcMemHandle tag;
	CUipcMemHandle second;

	assert_int_equal(symlink(top, paths[0]), 0);
	assert_int_equal(symlink(top, paths[1]), 0);
	tag = add(&registry, 0);
	assert_int_not_equal(registry.suffix, 0);
	assert_leads_there(&tag);
	second = add(&other, 0);
	assert_int_equal(other.suffix, registry.suffix);
	assert_leads_there(&second);
	gpc_ipc_registry_fini(&other, false);
	gpc_ipc_registry_fini(&registry, false);
	assert_leads_nowhere(&tag);
}

TEST(without_any_place_nothing_is_added)
{
	static const char *const nowhere[] = { "/proc/none/a", "/proc/none/b" };
	const char *const *before = gpc_ipc_registry_places;
	CUipcMemHandle tag;

	gpc_ipc_registry_places = nowhere;
	assert_int_equal(gpc_ipc_registry_add(&registry, 0, &target, &tag), GPC_IO);
	gpc_ipc_registry_places = before;
	assert_false(registry.is_open);
}

TEST(a_limit_of_the_file_size_is_kept)
{
	struct rlimit old;
	struct rlimit tight;
	CUipcMemHandle tag;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
	tight = (struct rlimit){ .rlim_cur = 4096, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
	assert_int_equal(gpc_ipc_registry_add(&registry, 0, &target, &tag), GPC_IO);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	tag = add(&registry, 0);
	assert_leads_there(&tag);
}

/* Every byte that means something counts; 13 do not, which fill the text's field and the end. */
TEST(a_tag_that_was_changed_leads_nowhere)
{
	CUipcMemHandle tag = add(&registry, 0);
	CUipcMemHandle changed;
	unsigned n_same = 0;

	(void)add(&registry, 1);
	for (size_t i = 0; i < sizeof tag.reserved; i++) {
		struct gpc_ipc_target found;

		changed = tag;
		changed.reserved[i] ^= 0x41;
		n_same += gpc_ipc_registry_find(&changed, &found) == GPC_OK;
	}
	assert_int_equal(n_same, 13);
	memset(&changed, 0xff, sizeof changed);
	assert_leads_nowhere(&changed);
}

TEST(a_file_that_was_cut_is_believed_no_further)
{
	CUipcMemHandle tag = add(&registry, 9);

	assert_int_equal(truncate(path_of(0, 0), 500), 0);
	assert_leads_nowhere(&tag);
	assert_int_equal(truncate(path_of(0, 0), 0), 0);
	assert_leads_nowhere(&tag);
}
