/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computed, not measured: texels times bits, rows padded to 64 bytes and to groups of 8, summed over mip levels.  No
 * product overflows, because sides above 2^19 are refused.
 */
#include "driver/array_bytes.h"

#include <stdbool.h>

#include "base/bytes.h"

/* The product of three sides and 16 bytes still fits into 64 bits; the largest side of any device is 2^17. */
#define MAX_SIDE ((size_t)1 << 19)

#define ROW_BYTES 64
#define ROWS      8

/* Block-compressed formats have 4 x 4 texels per block. */
#define BLOCK_SIDE 4

static bool is_block_compressed(CUarray_format format)
{
	return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
}

/* Bits of a texel, from the descriptions in cuda.h; 0: unknown. */
static uint64_t texel_bits(CUarray_format format, unsigned int n_channels)
{
	switch ((int)format) {
	case CU_AD_FORMAT_UNSIGNED_INT8:
	case CU_AD_FORMAT_SIGNED_INT8:
		return 8 * (uint64_t)n_channels;
	case CU_AD_FORMAT_UNSIGNED_INT16:
	case CU_AD_FORMAT_SIGNED_INT16:
	case CU_AD_FORMAT_HALF:
		return 16 * (uint64_t)n_channels;
	case CU_AD_FORMAT_UNSIGNED_INT32:
	case CU_AD_FORMAT_SIGNED_INT32:
	case CU_AD_FORMAT_FLOAT:
		return 32 * (uint64_t)n_channels;
	case CU_AD_FORMAT_BC1_UNORM:
	case CU_AD_FORMAT_BC1_UNORM_SRGB:
	case CU_AD_FORMAT_BC4_UNORM:
	case CU_AD_FORMAT_BC4_SNORM:
		return 4;
	case CU_AD_FORMAT_UNORM_INT8X1:
	case CU_AD_FORMAT_SNORM_INT8X1:
		return 8;
	case CU_AD_FORMAT_NV12:
		return 12;
	case CU_AD_FORMAT_UNORM_INT8X2:
	case CU_AD_FORMAT_SNORM_INT8X2:
	case CU_AD_FORMAT_UNORM_INT16X1:
	case CU_AD_FORMAT_SNORM_INT16X1:
	case CU_AD_FORMAT_NV16:
	case CU_AD_FORMAT_YUY2:
		return 16;
	case CU_AD_FORMAT_P010:
	case CU_AD_FORMAT_P016:
	case CU_AD_FORMAT_Y444_PLANAR8:
	case CU_AD_FORMAT_YUV444_8bit_SemiPlanar:
		return 24;
	case CU_AD_FORMAT_UNORM_INT8X4:
	case CU_AD_FORMAT_SNORM_INT8X4:
	case CU_AD_FORMAT_UNORM_INT16X2:
	case CU_AD_FORMAT_SNORM_INT16X2:
	case CU_AD_FORMAT_UNORM_INT_101010_2:
	case CU_AD_FORMAT_P210:
	case CU_AD_FORMAT_P216:
	case CU_AD_FORMAT_Y210:
	case CU_AD_FORMAT_Y216:
	case CU_AD_FORMAT_AYUV:
	case CU_AD_FORMAT_Y410:
		return 32;
	case CU_AD_FORMAT_Y444_PLANAR10:
	case CU_AD_FORMAT_YUV444_16bit_SemiPlanar:
		return 48;
	case CU_AD_FORMAT_UNORM_INT16X4:
	case CU_AD_FORMAT_SNORM_INT16X4:
	case CU_AD_FORMAT_Y416:
		return 64;
	default:
		return is_block_compressed(format) ? 8 : 0;
	}
}

static uint64_t half(uint64_t side)
{
	return side > 1 ? side / 2 : 1;
}

/* The sides of one mip level, in texels, at least 1. */
struct level {
	uint64_t width;
	uint64_t height;
	uint64_t depth;
};

static void add_level(struct gpc_array_bytes *bytes, const struct level *level, uint64_t bits,
	bool has_rows, uint64_t grain)
{
	uint64_t row = (gpc_round_up(level->width, grain) * bits + 7) / 8;
	uint64_t rows = gpc_round_up(level->height, grain);

	bytes->asked += row * rows * level->depth;
	if (has_rows)
		rows = gpc_round_up(rows, ROWS);
	bytes->held += gpc_round_up(row, ROW_BYTES) * rows * level->depth;
}

struct gpc_array_bytes gpc_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *desc, unsigned int n_levels)
{
	const bool has_layers = desc->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);
	const uint64_t grain = is_block_compressed(desc->Format) ? BLOCK_SIDE : 1;
	const uint64_t bits = texel_bits(desc->Format, desc->NumChannels);
	struct gpc_array_bytes bytes = { 0 };
	struct level level = {
		.width = desc->Width,
		.height = desc->Height ? desc->Height : 1,
		.depth = desc->Depth ? desc->Depth : 1,
	};

	if (bits == 0 || bits > 128 || desc->Width > MAX_SIDE || desc->Height > MAX_SIDE ||
		desc->Depth > MAX_SIDE ||
		desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return bytes;
	for (unsigned int i = 0; i < n_levels; i++) {
		add_level(&bytes, &level, bits, desc->Height > 1, grain);
		if (level.width <= 1 && level.height == 1 && (has_layers || level.depth == 1))
			break;
		level.width = half(level.width);
		level.height = half(level.height);
		if (!has_layers)
			level.depth = half(level.depth);
	}
	return bytes;
}
