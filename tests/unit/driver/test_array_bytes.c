/* SPDX-License-Identifier: Apache-2.0 */
#include "base/bytes.h"
#include "driver/array_bytes.h"
#include "unit.h"

static struct gpc_array_bytes bytes_of(
	size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels)
{
	const CUDA_ARRAY3D_DESCRIPTOR desc = {
		.Width = width,
		.Height = height,
		.Depth = depth,
		.Format = format,
		.NumChannels = channels,
	};

	return gpc_array_bytes(&desc, 1);
}

TEST(a_line_a_plane_and_a_volume_have_their_texels)
{
	assert_int_equal(bytes_of(2048, 0, 0, CU_AD_FORMAT_FLOAT, 1).asked, 8192);
	assert_int_equal(bytes_of(64, 64, 0, CU_AD_FORMAT_FLOAT, 1).asked, 16384);
	assert_int_equal(bytes_of(32, 64, 16, CU_AD_FORMAT_HALF, 4).asked, 32 * 64 * 16 * 8);
	assert_int_equal(bytes_of(10, 3, 2, CU_AD_FORMAT_UNSIGNED_INT8, 2).asked, 120);
}

TEST(rows_are_held_in_blocks_of_64_bytes_by_8)
{
	assert_int_equal(bytes_of(10, 0, 0, CU_AD_FORMAT_FLOAT, 1).held, 64);
	assert_int_equal(bytes_of(17, 1, 0, CU_AD_FORMAT_FLOAT, 1).held, 128);
	assert_int_equal(bytes_of(16, 2, 0, CU_AD_FORMAT_FLOAT, 1).held, 512);
	assert_int_equal(bytes_of(17, 9, 3, CU_AD_FORMAT_FLOAT, 1).held, 128 * 16 * 3);
	assert_int_equal(bytes_of(1024, 512, 0, CU_AD_FORMAT_FLOAT, 1).held, 2 * GPC_MIB);
}

TEST(packed_planar_and_compressed_formats_have_bits_of_their_own)
{
	assert_int_equal(bytes_of(64, 8, 0, CU_AD_FORMAT_BC1_UNORM, 4).asked, 256);
	assert_int_equal(bytes_of(61, 5, 0, CU_AD_FORMAT_BC7_UNORM, 4).asked, 512);
	assert_int_equal(bytes_of(64, 8, 0, CU_AD_FORMAT_NV12, 3).asked, 768);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_UNORM_INT16X4, 4).asked, 64);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_P010, 3).asked, 24);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_Y444_PLANAR10, 3).asked, 48);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_UNORM_INT_101010_2, 4).asked, 32);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_SNORM_INT8X1, 1).asked, 8);
	assert_int_equal(bytes_of(8, 1, 0, CU_AD_FORMAT_YUY2, 2).asked, 16);
}

static uint64_t asked_of_levels(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned n)
{
	return gpc_array_bytes(desc, n).asked;
}

TEST(levels_are_half_of_each_side_and_end_at_one_texel)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { .Width = 8,
		.Height = 4,
		.Depth = 2,
		.Format = CU_AD_FORMAT_UNSIGNED_INT8,
		.NumChannels = 1 };

	assert_int_equal(asked_of_levels(&desc, 1), 64);
	assert_int_equal(asked_of_levels(&desc, 2), 64 + 8);
	assert_int_equal(asked_of_levels(&desc, 4), 64 + 8 + 2 + 1);
	assert_int_equal(asked_of_levels(&desc, 40), 64 + 8 + 2 + 1);
	assert_int_equal(asked_of_levels(&desc, 0), 0);
	desc.Flags = CUDA_ARRAY3D_LAYERED;
	assert_int_equal(asked_of_levels(&desc, 4), 64 + 16 + 4 + 2);
	assert_int_equal(asked_of_levels(&desc, 40), 64 + 16 + 4 + 2);
}

TEST(an_array_without_memory_or_of_impossible_size_takes_nothing)
{
	CUDA_ARRAY3D_DESCRIPTOR desc = { .Width = 64,
		.Height = 64,
		.Format = CU_AD_FORMAT_FLOAT,
		.NumChannels = 1,
		.Flags = CUDA_ARRAY3D_SPARSE };

	assert_int_equal(gpc_array_bytes(&desc, 1).held, 0);
	desc.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
	assert_int_equal(gpc_array_bytes(&desc, 1).held, 0);
	assert_int_equal(bytes_of(64, 64, 0, (CUarray_format)0x7f, 1).asked, 0);
	assert_int_equal(bytes_of((size_t)1 << 40, 1, 1, CU_AD_FORMAT_FLOAT, 1).asked, 0);
	assert_int_equal(bytes_of(1, (size_t)1 << 40, 1, CU_AD_FORMAT_FLOAT, 1).asked, 0);
	assert_int_equal(bytes_of(1, 1, SIZE_MAX, CU_AD_FORMAT_FLOAT, 1).asked, 0);
	assert_int_equal(bytes_of(1, 1, 1, CU_AD_FORMAT_FLOAT, 1u << 30).asked, 0);
	assert_int_equal(bytes_of(0, 0, 0, CU_AD_FORMAT_FLOAT, 1).asked, 0);
}
