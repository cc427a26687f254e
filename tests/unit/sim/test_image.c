/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "sim/gpu/memory/image.h"

#define PTX    1
#define CUBIN  2
#define ALONE  0x100000
#define FAMILY 0x200000

static struct {
	char bytes[1024];
	size_t size;
} fat;

static void put(size_t at, uint64_t value, size_t size)
{
	memcpy(fat.bytes + at, &value, size);
}

/* A fat binary without an image. */
static void fat_begin(void)
{
	memset(&fat, 0, sizeof fat);
	put(0, 0xba55ed50, 4);
	put(4, 1, 2);
	put(6, 16, 2);
	fat.size = 16;
}

/* As nvcc writes it, with 8 bytes of code behind a header of 64. */
static void fat_add(unsigned kind, unsigned arch, uint64_t flags)
{
	put(fat.size, kind, 2);
	put(fat.size + 4, 64, 4);
	put(fat.size + 8, 8, 8);
	put(fat.size + 28, arch, 4);
	put(fat.size + 40, flags | 0x11, 8);
	fat.size += 72;
	put(8, fat.size - 16, 8);
}

static CUresult choose(const void *image, const char *gpu, struct gpc_sim_image *ret_image)
{
	return gpc_sim_image_choose(image, gpc_sim_model_find(gpu), ret_image);
}

static void expect_versions(const void *image, const char *gpu, int ptx, int binary)
{
	struct gpc_sim_image got = { 0, 0 };

	at_int_equal(choose(image, gpu, &got), CUDA_SUCCESS);
	at_int_equal(got.ptx, ptx);
	at_int_equal(got.binary, binary);
}

static void expect_refused(const void *image, const char *gpu, CUresult error)
{
	struct gpc_sim_image got;

	at_int_equal(choose(image, gpu, &got), error);
}

#define expect_versions(...) AT(expect_versions(__VA_ARGS__))
#define expect_refused(...)  AT(expect_refused(__VA_ARGS__))

TEST(a_gpu_loads_the_largest_cubin_of_its_major_version)
{
	fat_begin();
	fat_add(CUBIN, 75, 0);
	fat_add(CUBIN, 86, 0);
	fat_add(CUBIN, 80, 0);
	fat_add(CUBIN, 90, 0);
	expect_versions(fat.bytes, "t4", 75, 75);
	expect_versions(fat.bytes, "a100-80", 80, 80);
	expect_versions(fat.bytes, "rtx3090", 86, 86);
	expect_versions(fat.bytes, "l4", 86, 86);
	expect_versions(fat.bytes, "h100", 90, 90);
}

TEST(without_a_cubin_that_fits_it_compiles_the_largest_ptx)
{
	fat_begin();
	fat_add(PTX, 75, 0);
	fat_add(PTX, 80, 0);
	fat_add(PTX, 100, 0);
	fat_add(CUBIN, 90, 0);
	expect_versions(fat.bytes, "l4", 80, 89);
	expect_versions(fat.bytes, "h100", 90, 90);
	expect_versions(fat.bytes, "b200", 100, 100);
}

TEST(a_gpu_that_no_image_fits_has_no_binary)
{
	fat_begin();
	expect_refused(fat.bytes, "h100", CUDA_ERROR_NO_BINARY_FOR_GPU);
	fat_add(CUBIN, 75, 0);
	fat_add(PTX, 80, 0);
	expect_refused(fat.bytes, "v100", CUDA_ERROR_NO_BINARY_FOR_GPU);
	expect_versions(fat.bytes, "t4", 75, 75);
}

TEST(code_for_one_architecture_fits_no_other)
{
	fat_begin();
	fat_add(CUBIN, 86, ALONE);
	fat_add(PTX, 80, ALONE);
	fat_add(CUBIN, 90, ALONE);
	expect_refused(fat.bytes, "l4", CUDA_ERROR_NO_BINARY_FOR_GPU);
	expect_versions(fat.bytes, "h100", 90, 90);
	expect_versions(fat.bytes, "a100-40", 80, 80);
}

TEST(code_for_a_family_fits_its_major_version)
{
	fat_begin();
	fat_add(PTX, 90, FAMILY);
	fat_add(CUBIN, 80, FAMILY);
	expect_refused(fat.bytes, "b200", CUDA_ERROR_NO_BINARY_FOR_GPU);
	expect_versions(fat.bytes, "h100", 90, 90);
	expect_versions(fat.bytes, "l4", 80, 80);
}

TEST(what_is_neither_cubin_nor_ptx_in_a_fat_binary_is_passed_over)
{
	fat_begin();
	fat_add(8, 89, 0); /* for the linker */
	fat_add(CUBIN, 80, 0);
	expect_versions(fat.bytes, "l4", 80, 80);
}

TEST(a_fat_binary_is_found_behind_its_wrapper)
{
	const struct {
		uint32_t magic, version;
		const void *data;
		void *more;
	} wrapper = { 0x466243b1, 1, fat.bytes, NULL };

	fat_begin();
	fat_add(CUBIN, 86, 0);
	expect_versions(&wrapper, "l4", 86, 86);
}

TEST(a_cubin_has_its_version_where_its_abi_has_it)
{
	unsigned char elf[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, 0x41, 8 };

	memcpy(elf + 48, "\x04\x56\x00\x06", 4); /* nvcc 13, sm_86 */
	expect_versions(elf, "l4", 86, 86);
	expect_refused(elf, "h100", CUDA_ERROR_NO_BINARY_FOR_GPU);
	elf[7] = 0x33;
	elf[8] = 7;
	memcpy(elf + 48, "\x50\x05\x50\x00", 4); /* nvcc 12, sm_80 */
	expect_versions(elf, "l4", 80, 80);
}

TEST(ptx_has_its_version_in_its_target)
{
	expect_versions("//\n// by nvcc\n\n.version 8.0\n.target sm_75\n", "l4", 75, 89);
	expect_versions(".version 8.0\n.target sm_90a, debug\n", "h100", 90, 90);
	expect_refused(".version 8.0\n.target sm_90a\n", "b200", CUDA_ERROR_INVALID_PTX);
	expect_refused(".version 8.7\n.target sm_100f\n", "h100", CUDA_ERROR_INVALID_PTX);
}

TEST(what_is_no_image_fits_every_gpu)
{
	expect_versions("", "l4", 89, 89);
	expect_versions(".version 8.0", "h100", 90, 90);
	expect_versions("\x7f", "t4", 75, 75);
	expect_versions("\x50\xed\x55", "v100", 70, 70);
}
