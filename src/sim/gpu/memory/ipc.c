/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of an exported allocation move into a memfd, which the importer opens by /proc/PID/fd and maps at addresses
 * of its own.  If the exporter has closed the file and reused its descriptor number, the inode differs from the
 * handle's.
 */
#include "sim/gpu/memory/ipc.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

/* The content of a handle. */
struct content {
	uint64_t magic;
	uint64_t inode; /* the inode of `file` when it was exported */
	int64_t pid;
	int32_t file;
	uint32_t device;
	uint64_t extent_size;
	uint64_t offset; /* where the allocation starts in its extent */
	uint64_t size;
};

_Static_assert(sizeof(struct content) <= sizeof(CUipcMemHandle), "the content fits in a handle");

#define MAGIC UINT64_C(0x6770757369706332)

struct gpc_sim_opened {
	struct gpc_list link;
	struct content content;
	struct gpc_sim_context *context;
	uint64_t ptr;
	unsigned n_opens;
};

static bool inode_of(int file, uint64_t *ret_inode)
{
	struct stat st;

	if (fstat(file, &st))
		return false;
	*ret_inode = (uint64_t)st.st_ino;
	return true;
}

CUresult gpc_sim_ipc_export(struct gpc_sim *sim, uint64_t ptr, CUipcMemHandle *ret_handle)
{
	struct gpc_sim_device *device = gpc_sim_device_of(sim, ptr);
	struct content content = { .magic = MAGIC, .pid = getpid() };
	uint64_t base, extent;
	CUresult res;

	if (!device || !gpc_sim_device_find(device, ptr, &base, &content.size, NULL))
		return CUDA_ERROR_INVALID_VALUE;
	/* Holds off effects, because a write while the bytes move would be lost. */
	pthread_mutex_lock(&sim->effects.lock);
	res = gpc_sim_device_share(device, base, &content.file, &extent, &content.extent_size);
	pthread_mutex_unlock(&sim->effects.lock);
	if (res != CUDA_SUCCESS)
		return res;
	if (!inode_of(content.file, &content.inode))
		return CUDA_ERROR_INVALID_VALUE;
	content.device = device->ordinal;
	content.offset = base - extent;
	memset(ret_handle, 0, sizeof *ret_handle);
	memcpy(ret_handle, &content, sizeof content);
	return CUDA_SUCCESS;
}

static struct gpc_sim_opened *find_locked(struct gpc_sim *sim, const struct content *content)
{
	gpc_list_each (link, &sim->opened) {
		struct gpc_sim_opened *at = gpc_list_entry(link, struct gpc_sim_opened, link);

		if (!memcmp(&at->content, content, sizeof *content))
			return at;
	}
	return NULL;
}

/* Opens the exporter's file; -1 if that file is gone. */
static int open_file(const struct content *content)
{
	char path[64];
	uint64_t inode;
	int file;

	snprintf(
		path, sizeof path, "/proc/%lld/fd/%d", (long long)content->pid, (int)content->file);
	file = gpc_io_open(path, O_RDWR);
	if (file >= 0 && (!inode_of(file, &inode) || inode != content->inode)) {
		close(file);
		file = -1;
	}
	return file;
}

static CUresult map_new_locked(struct gpc_sim_context *context, const struct content *content,
	struct gpc_sim_opened **ret_opened)
{
	struct gpc_sim_device *device = &context->sim->devices[content->device];
	struct gpc_sim_opened *opened = calloc(1, sizeof *opened);
	int file = open_file(content);
	uint64_t extent;
	CUresult res = file < 0 ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_OUT_OF_MEMORY;

	if (file < 0 || !opened)
		goto undo_opened;
	res = gpc_sim_device_reserve(device, content->extent_size, &extent);
	if (res != CUDA_SUCCESS)
		goto undo_opened;
	if (!gpc_sim_device_attach(device, extent, content->extent_size, file)) {
		res = CUDA_ERROR_MAP_FAILED;
		goto undo_extent;
	}
	close(file);
	opened->content = *content;
	opened->context = context;
	opened->ptr = extent + content->offset;
	gpc_list_append(&context->sim->opened, &opened->link);
	*ret_opened = opened;
	return CUDA_SUCCESS;

undo_extent:
	(void)gpc_sim_device_free(device, extent);
undo_opened:
	if (file >= 0)
		close(file);
	free(opened);
	return res;
}

CUresult gpc_sim_ipc_open(struct gpc_sim_context *context, const CUipcMemHandle *handle,
	unsigned flags, uint64_t *ret_ptr)
{
	struct gpc_sim *sim = context->sim;
	struct gpc_sim_opened *opened;
	struct content content;
	CUresult res = CUDA_SUCCESS;

	memcpy(&content, handle, sizeof content);
	if (flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || content.magic != MAGIC ||
		content.device >= sim->config.n_devices)
		return CUDA_ERROR_INVALID_VALUE;
	if (content.pid == getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	pthread_mutex_lock(&sim->ipc_lock);
	opened = find_locked(sim, &content);
	if (!opened)
		res = map_new_locked(context, &content, &opened);
	else if (opened->context != context)
		res = CUDA_ERROR_INVALID_CONTEXT;
	if (res == CUDA_SUCCESS) {
		opened->n_opens++;
		*ret_ptr = opened->ptr;
	}
	pthread_mutex_unlock(&sim->ipc_lock);
	return res;
}

static void unmap_locked(struct gpc_sim *sim, struct gpc_sim_opened *opened)
{
	const struct content *content = &opened->content;

	gpc_list_remove(&opened->link);
	(void)gpc_sim_device_free(&sim->devices[content->device], opened->ptr - content->offset);
	free(opened);
}

CUresult gpc_sim_ipc_close(struct gpc_sim *sim, uint64_t ptr)
{
	struct gpc_sim_opened *opened = NULL;

	pthread_mutex_lock(&sim->ipc_lock);
	gpc_list_each (link, &sim->opened) {
		struct gpc_sim_opened *at = gpc_list_entry(link, struct gpc_sim_opened, link);

		if (at->ptr == ptr)
			opened = at;
	}
	if (opened && --opened->n_opens == 0)
		unmap_locked(sim, opened);
	pthread_mutex_unlock(&sim->ipc_lock);
	return opened ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

bool gpc_sim_ipc_find(struct gpc_sim *sim, uint64_t ptr, uint64_t *ret_base, uint64_t *ret_size)
{
	bool is_found = false;

	pthread_mutex_lock(&sim->ipc_lock);
	gpc_list_each (link, &sim->opened) {
		const struct gpc_sim_opened *at = gpc_list_entry(link, struct gpc_sim_opened, link);

		if (ptr - at->ptr >= at->content.size)
			continue;
		is_found = true;
		if (ret_base)
			*ret_base = at->ptr;
		if (ret_size)
			*ret_size = at->content.size;
	}
	pthread_mutex_unlock(&sim->ipc_lock);
	return is_found;
}

void gpc_sim_ipc_close_all(struct gpc_sim_context *context)
{
	struct gpc_sim *sim = context->sim;

	pthread_mutex_lock(&sim->ipc_lock);
	gpc_list_each_safe (link, &sim->opened) {
		struct gpc_sim_opened *at = gpc_list_entry(link, struct gpc_sim_opened, link);

		if (at->context == context)
			unmap_locked(sim, at);
	}
	pthread_mutex_unlock(&sim->ipc_lock);
}
