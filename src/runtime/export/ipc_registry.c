/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each exporting process holds a lock (flock) on the file of its slot.  A file without a lock belongs to a dead
 * process, and its slot may be taken.  An entry begins and ends with the same serial.  A reader that is overtaken by a
 * writer finds two different serials, and refuses the entry.
 */
#include "runtime/export/ipc_registry.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/own_folder.h"
#include "base/text.h"

static const char magic[] = "gpucache IPC tag 1";

struct tag {
	char magic[24];
	uint32_t place;
	uint32_t slot;
	uint64_t nonce;
	uint64_t serial;
	uint32_t entry;
	uint32_t suffix; /* of the directory: base/own_folder.h */
};

_Static_assert(sizeof(struct tag) <= sizeof(CUipcMemHandle), "a tag is as long as a handle");
_Static_assert(sizeof magic <= sizeof((struct tag){ 0 }.magic), "its text fits");

struct entry {
	uint64_t serial; /* 0: empty */
	struct gpc_ipc_target target;
	uint64_t same_serial;
};

struct content {
	uint64_t nonce;
	struct entry entries[GPC_IPC_MAX_ENTRIES];
};

const char *const *gpc_ipc_registry_places;

/* --- Places ----------------------------------------------------------------------------------- */

static void path_of_place(uint32_t place, char *buf, size_t size)
{
	static const char *const parents[GPC_IPC_N_PLACES] = { "/dev/shm", "/tmp" };

	if (gpc_ipc_registry_places)
		gpc_format(buf, size, "%s", gpc_ipc_registry_places[place]);
	else
		gpc_format(buf, size, "%s/gpucache-%u", parents[place], (unsigned)geteuid());
}

/* Opens the directory; -1 unless it belongs to this user and is closed to all others. */
static int open_place(uint32_t place, uint32_t suffix)
{
	char path[256];

	path_of_place(place, path, sizeof path);
	return gpc_own_folder_open(path, suffix);
}

static int make_place(uint32_t place, bool is_random, uint32_t *ret_suffix)
{
	char path[256];

	*ret_suffix = 0;
	path_of_place(place, path, sizeof path);
	return is_random ? gpc_own_folder_make_random(path, ret_suffix) : gpc_own_folder_make(path);
}

static void name_of_slot(uint32_t slot, char *buf, size_t size)
{
	gpc_format(buf, size, "ipc-%u", slot);
}

/* Opens a regular file of this user; -1 if there is none. */
static int open_slot(int dir_fd, uint32_t slot, int flags)
{
	char name[32];
	struct stat st;
	int fd;

	name_of_slot(slot, name, sizeof name);
	fd = gpc_io_open_at(dir_fd, name, flags | O_NOFOLLOW | O_NONBLOCK, 0600);
	if (fd < 0)
		return -1;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == geteuid())
		return fd;
	gpc_io_drop(fd);
	return -1;
}

/* True if the slot's name refers to this file: its owner may have removed the file before we locked it. */
static bool has_its_name(int dir_fd, uint32_t slot, int fd)
{
	char name[32];
	struct stat by_name;
	struct stat by_fd;

	name_of_slot(slot, name, sizeof name);
	return !fstatat(dir_fd, name, &by_name, AT_SYMLINK_NOFOLLOW) && !fstat(fd, &by_fd) &&
	       by_name.st_dev == by_fd.st_dev && by_name.st_ino == by_fd.st_ino;
}

/* --- The file --------------------------------------------------------------------------------- */

static bool read_at(int fd, void *data, size_t size, size_t offset)
{
	return gpc_io_read_at(fd, data, size, offset) == (ssize_t)size;
}

static bool has_nonce(int fd, uint64_t nonce)
{
	uint64_t found;

	return read_at(fd, &found, sizeof found, offsetof(struct content, nonce)) && found == nonce;
}

/* --- The exporter ----------------------------------------------------------------------------- */

static enum gpc_status write_at(int fd, const void *data, size_t size, size_t offset)
{
	ssize_t n;

	do
		n = pwrite(fd, data, size, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)size ? GPC_OK : GPC_IO;
}

/* Takes a slot that no living process holds.  Returns its file, locked and empty; -1: all are held. */
static int take_slot(int dir_fd, uint32_t *ret_slot)
{
	for (uint32_t slot = 0; slot < GPC_IPC_MAX_SLOTS; slot++) {
		int fd = open_slot(dir_fd, slot, O_RDWR | O_CREAT);

		if (fd < 0)
			continue;
		if (!flock(fd, LOCK_EX | LOCK_NB) && has_its_name(dir_fd, slot, fd) &&
			!ftruncate(fd, 0)) {
			(void)fchmod(fd, 0600); /* whatever the umask is */
			*ret_slot = slot;
			return fd;
		}
		gpc_io_drop(fd);
	}
	return -1;
}

static enum gpc_status open_in_place(
	struct gpc_ipc_registry *registry, uint32_t place, bool is_random)
{
	uint32_t suffix;
	int dir_fd = make_place(place, is_random, &suffix);
	uint64_t nonce = 0;
	uint32_t slot = 0;
	int fd;

	if (dir_fd < 0)
		return GPC_IO;
	fd = take_slot(dir_fd, &slot);
	gpc_io_drop(dir_fd);
	if (fd < 0)
		return GPC_IO;
	if (getrandom(&nonce, sizeof nonce, GRND_NONBLOCK) != sizeof nonce ||
		write_at(fd, &nonce, sizeof nonce, offsetof(struct content, nonce))) {
		gpc_io_drop(fd);
		return GPC_IO;
	}
	registry->is_open = true;
	registry->fd = fd;
	registry->file = gpc_io_file_of(fd);
	registry->place = place;
	registry->suffix = suffix;
	registry->slot = slot;
	registry->nonce = nonce;
	return GPC_OK;
}

static enum gpc_status open_file(struct gpc_ipc_registry *registry)
{
	enum gpc_status st = GPC_IO;
	struct rlimit limit;

	/* A write beyond the limit would raise SIGXFSZ. */
	if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < sizeof(struct content))
		return GPC_IO;
	/* If other users took the names in both places, use a random name. */
	for (uint32_t i = 0; st && i < 2 * GPC_IPC_N_PLACES; i++)
		st = open_in_place(registry, i % GPC_IPC_N_PLACES, i >= GPC_IPC_N_PLACES);
	return st;
}

/* Opens our file by its name after the program closed our descriptor.  False: it is no longer ours. */
static bool find_again(struct gpc_ipc_registry *registry)
{
	int dir_fd = open_place(registry->place, registry->suffix);
	int fd;

	if (dir_fd < 0)
		return false;
	fd = open_slot(dir_fd, registry->slot, O_RDWR);
	if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) || !has_its_name(dir_fd, registry->slot, fd) ||
			       !has_nonce(fd, registry->nonce))) {
		gpc_io_drop(fd);
		fd = -1;
	}
	gpc_io_drop(dir_fd);
	if (fd < 0)
		return false;
	registry->fd = fd;
	registry->file = gpc_io_file_of(fd);
	return true;
}

/* True if registry->fd is our file. */
static bool has_file(struct gpc_ipc_registry *registry)
{
	return registry->is_open &&
	       (gpc_io_is(registry->fd, &registry->file) || find_again(registry));
}

static size_t offset_of(uint32_t number)
{
	return offsetof(struct content, entries) + number * sizeof(struct entry);
}

enum gpc_status gpc_ipc_registry_add(struct gpc_ipc_registry *registry, uint32_t number,
	const struct gpc_ipc_target *target, CUipcMemHandle *ret_tag)
{
	enum gpc_status st = has_file(registry) ? GPC_OK : open_file(registry);
	struct entry entry = { .target = *target };
	struct tag tag = { .entry = number };

	if (st)
		return st;
	entry.serial = registry->last_serial + 1;
	entry.same_serial = entry.serial;
	st = write_at(registry->fd, &entry, sizeof entry, offset_of(number));
	if (st)
		return st;
	registry->last_serial = entry.serial;
	memcpy(tag.magic, magic, sizeof magic);
	tag.place = registry->place;
	tag.suffix = registry->suffix;
	tag.slot = registry->slot;
	tag.nonce = registry->nonce;
	tag.serial = entry.serial;
	memset(ret_tag, 0, sizeof *ret_tag);
	memcpy(ret_tag, &tag, sizeof tag);
	return GPC_OK;
}

void gpc_ipc_registry_remove(struct gpc_ipc_registry *registry, uint32_t number)
{
	const struct entry empty = { 0 };

	if (has_file(registry))
		(void)!write_at(registry->fd, &empty, sizeof empty, offset_of(number));
}

/* The name is still our file's: other processes remove or reuse only a file without a lock. */
static void remove_file(const struct gpc_ipc_registry *registry)
{
	int dir_fd = open_place(registry->place, registry->suffix);
	char name[32];

	if (dir_fd < 0)
		return;
	name_of_slot(registry->slot, name, sizeof name);
	if (has_its_name(dir_fd, registry->slot, registry->fd))
		(void)unlinkat(dir_fd, name, 0);
	gpc_io_drop(dir_fd);
}

void gpc_ipc_registry_fini(struct gpc_ipc_registry *registry, bool is_child)
{
	if (!registry->is_open)
		return;
	if (!is_child && has_file(registry))
		remove_file(registry);
	gpc_io_close(registry->fd, &registry->file);
	*registry = (struct gpc_ipc_registry){ 0 };
}

/* --- The importer ----------------------------------------------------------------------------- */

bool gpc_ipc_is_tag(const CUipcMemHandle *handle)
{
	return memcmp(handle, magic, sizeof magic) == 0;
}

static bool read_entry(int fd, const struct tag *tag, struct entry *entry)
{
	return has_nonce(fd, tag->nonce) &&
	       read_at(fd, entry, sizeof *entry, offset_of(tag->entry)) &&
	       entry->serial == tag->serial && entry->same_serial == tag->serial;
}

enum gpc_status gpc_ipc_registry_find(
	const CUipcMemHandle *handle, struct gpc_ipc_target *ret_target)
{
	struct entry entry;
	struct tag tag;
	bool is_found;
	int dir_fd;
	int fd;

	memcpy(&tag, handle, sizeof tag);
	if (!gpc_ipc_is_tag(handle) || tag.place >= GPC_IPC_N_PLACES ||
		tag.slot >= GPC_IPC_MAX_SLOTS || tag.entry >= GPC_IPC_MAX_ENTRIES ||
		tag.serial == 0)
		return GPC_NOT_FOUND;
	dir_fd = open_place(tag.place, tag.suffix);
	if (dir_fd < 0)
		return GPC_NOT_FOUND;
	fd = open_slot(dir_fd, tag.slot, O_RDONLY);
	gpc_io_drop(dir_fd);
	if (fd < 0)
		return GPC_NOT_FOUND;
	is_found = read_entry(fd, &tag, &entry);
	gpc_io_drop(fd);
	if (!is_found)
		return GPC_NOT_FOUND;
	*ret_target = entry.target;
	return GPC_OK;
}
