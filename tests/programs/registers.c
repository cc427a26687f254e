/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How communication libraries register device memory, call by call, and what another process then reads.
 *
 *   registers LIBRARY      ucx, openmpi, nccl, gdrcopy
 *
 *      this process     malloc, fill, ask as LIBRARY does, send (handle, offset)     free, malloc, fill the same place
 *      the other one                        opens, reads at the offset                   reads again by its old mapping
 *
 * A library caches registrations by address, and reuses one as long as the driver returns the same BUFFER_ID: its
 * partner then reads by its existing mapping.
 *
 * Sources (public, 2025): UCX src/uct/cuda/cuda_ipc/cuda_ipc_md.c (uct_cuda_ipc_mem_add_reg) and src/ucm/cuda/cudamem.c,
 * which looks up the base of what is freed; Open MPI opal/mca/accelerator/cuda/accelerator_cuda.c (accelerator_cuda_check_addr,
 * accelerator_cuda_get_address_range, accelerator_cuda_get_ipc_handle, accelerator_cuda_get_buffer_id); NCCL
 * src/transport/p2p.cc (ipcRegisterBuffer); GDRCopy tests/common.cpp (gpu_mem_alloc), whose pages are 64 KiB.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cuda.h>

#define KIB      ((size_t)1 << 10)
#define MIB      ((size_t)1 << 20)
#define GPU_PAGE (64 * KIB)
#define N_BLOCKS 6 /* of each size */

/* Ends the program where a call fails. */
#define OK(call) check(#call, (int)(call))

static void check(const char *call, int result)
{
	if (result == 0)
		return;
	printf("%s: %d\n", call, result);
	fflush(stdout);
	_exit(1);
}

struct message {
	int is_new; /* open the handle; else read by the mapping of this place */
	int place;
	size_t offset;
	CUipcMemHandle handle;
};

static int to_other[2], from_other[2];

static void start_cuda(void)
{
	CUcontext context;

	OK(cuInit(0));
	OK(cuDevicePrimaryCtxRetain(&context, 0));
	OK(cuCtxSetCurrent(context));
}

static int be_the_other(void)
{
	static CUdeviceptr mapped[N_BLOCKS];
	struct message message;

	start_cuda();
	while (read(to_other[0], &message, sizeof message) == (ssize_t)sizeof message) {
		CUdeviceptr *at = &mapped[message.place];
		unsigned char byte = 0;

		if (message.is_new) {
			if (*at)
				OK(cuIpcCloseMemHandle(*at));
			OK(cuIpcOpenMemHandle(
				at, message.handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
		}
		OK(cuMemcpyDtoH(&byte, *at + message.offset, 1));
		OK(write(from_other[1], &byte, 1) != 1);
	}
	return 0;
}

static int other_reads(struct message *message)
{
	unsigned char byte = 0;

	OK(write(to_other[1], message, sizeof *message) != sizeof *message);
	OK(read(from_other[0], &byte, 1) != 1);
	return byte;
}

/* What a library remembers of an address. */
struct registration {
	CUdeviceptr base;
	size_t size;
	unsigned long long id;
	CUipcMemHandle handle;
};

static unsigned long long id_of(CUdeviceptr ptr)
{
	unsigned long long id = 0;

	OK(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, ptr));
	return id;
}

/* The handle is of `ptr`, which the partner takes for that of the base. */
static void by_ucx(CUdeviceptr ptr, struct registration *made)
{
	OK(cuMemGetAddressRange(&made->base, &made->size, ptr));
	made->id = id_of(ptr);
	OK(cuIpcGetMemHandle(&made->handle, ptr));
}

static void by_openmpi(CUdeviceptr ptr, struct registration *made)
{
	CUmemorytype type = 0;
	int is_managed = 0;
	CUcontext context = NULL;
	CUpointer_attribute attributes[] = { CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
		CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_IS_MANAGED };
	void *data[] = { &type, &context, &is_managed };

	OK(cuPointerGetAttributes(3, attributes, data, ptr));
	OK(type != CU_MEMORYTYPE_DEVICE || is_managed);
	OK(cuMemGetAddressRange(&made->base, &made->size, ptr));
	made->id = id_of(ptr);
	OK(cuIpcGetMemHandle(&made->handle, made->base));
}

static void by_nccl(CUdeviceptr ptr, struct registration *made)
{
	int is_capable = 0;

	OK(cuMemGetAddressRange(&made->base, &made->size, ptr));
	OK(cuPointerGetAttribute(
		&is_capable, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, made->base));
	OK(!is_capable);
	made->id = id_of(made->base);
	OK(cuIpcGetMemHandle(&made->handle, made->base));
}

static const struct {
	const char *name;
	void (*registers)(CUdeviceptr ptr, struct registration *made);
} libraries[] = { { "ucx", by_ucx }, { "openmpi", by_openmpi }, { "nccl", by_nccl } };

static void exchange(int library, size_t size)
{
	struct registration known[N_BLOCKS];
	CUdeviceptr blocks[N_BLOCKS];
	unsigned n_right = 0, n_again = 0, n_moved = 0;

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < N_BLOCKS; i++) {
			struct message message = { .place = i };
			int value = 1 + i + N_BLOCKS * round;
			CUdeviceptr base;
			size_t whole;

			if (round)
				OK(cuMemFree(blocks[i]));
			OK(cuMemAlloc(&blocks[i], size));
			OK(cuMemsetD8(blocks[i], (unsigned char)value, size));
			OK(cuCtxSynchronize());
			message.is_new = !round || blocks[i] < known[i].base ||
					 blocks[i] + size > known[i].base + known[i].size ||
					 id_of(blocks[i]) != known[i].id;
			if (message.is_new)
				libraries[library].registers(blocks[i], &known[i]);
			OK(blocks[i] < known[i].base ||
				blocks[i] + size > known[i].base + known[i].size);
			message.handle = known[i].handle;
			message.offset = blocks[i] - known[i].base;
			*(round ? &n_again : &n_right) += other_reads(&message) == value;
			/* UCX complains where what is freed is not the base of its range. */
			OK(cuMemGetAddressRange(&base, &whole, blocks[i]));
			n_moved += round && size >= GPU_PAGE && base != blocks[i];
		}
	for (int i = 0; i < N_BLOCKS; i++)
		OK(cuMemFree(blocks[i]));
	printf("%zu bytes: %u of %d right, then %u; %u not where their allocation begins\n", size,
		n_right, N_BLOCKS, n_again, n_moved);
}

/* Pinned in whole pages, of a block that has room for them: each keeps what was written to it. */
static void pin(size_t size)
{
	const unsigned int one = 1;
	CUdeviceptr blocks[N_BLOCKS], pages[N_BLOCKS];
	unsigned n_right = 0;

	for (int i = 0; i < N_BLOCKS; i++) {
		OK(cuMemAlloc(&blocks[i], size + GPU_PAGE - 1));
		OK(cuPointerSetAttribute(&one, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, blocks[i]));
		pages[i] = (blocks[i] + GPU_PAGE - 1) & ~(CUdeviceptr)(GPU_PAGE - 1);
		OK(cuMemsetD8(pages[i], (unsigned char)(1 + i), size));
	}
	for (int i = 0; i < N_BLOCKS; i++) {
		unsigned char first = 0, last = 0;

		OK(cuMemcpyDtoH(&first, pages[i], 1));
		OK(cuMemcpyDtoH(&last, pages[i] + size - 1, 1));
		n_right += first == 1 + i && last == 1 + i;
		OK(cuMemFree(blocks[i]));
	}
	printf("%zu bytes: %u of %d right\n", size, n_right, N_BLOCKS);
}

int main(int argc, char **argv)
{
	static const size_t sizes[] = { 4 * KIB, 64 * KIB, 300000, 1500000, 3 * MIB, 40 * MIB };
	int library = 0;
	pid_t other;

	if (argc == 2 && strcmp(argv[1], "gdrcopy") == 0) {
		start_cuda();
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
			pin((sizes[i] + GPU_PAGE - 1) / GPU_PAGE * GPU_PAGE);
		return 0;
	}
	while (library < 3 && (argc != 2 || strcmp(argv[1], libraries[library].name) != 0))
		library++;
	if (library == 3 || pipe(to_other) || pipe(from_other))
		return 2;
	other = fork();
	if (other == 0) {
		close(to_other[1]);
		return be_the_other();
	}
	close(to_other[0]);
	close(from_other[1]);
	start_cuda();
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		exchange(library, sizes[i]);
	close(to_other[1]);
	waitpid(other, NULL, 0);
	return 0;
}
