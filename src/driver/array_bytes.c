/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each mip level has width x height x depth texels.  A row of texels is padded to 64 bytes, and the number of rows, if
 * above 1, to a multiple of 8.  The bytes of all levels are added up.  No sum overflows, because sides above 2^19 and
 * texels above 16 bytes are refused.
 */
#include "driver/array_bytes.h"

#include <stdbool.h>

#include "base/bytes.h"

/* No device supports a side above 2^17.  Three sides of 2^19, times 16 bytes per texel, are 2^61 bytes. */
#define MAX_SIDE ((size_t)1 << 19)

#define ROW_BYTES 64
#define ROWS      8

/* Block-compressed formats have 4 x 4 texels per block. */
#define BLOCK_SIDE 4

static bool is_block_compressed(CUarray_format format)
{
	return format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB;
}

/* The bits of a texel; 0: unknown. */
static uint64_t texel_bits(CUarray_format format, uint64_t n_channels)
{
#define FORMAT(name, number, bits) \
	if (format == (name))      \
		return bits;
#define VALUE(name, number)
#define ENUM(type, values) values
#define FLAGS(tag, values)
#include "driver/cuda_values.def"
#undef VALUE
#undef ENUM
#undef FLAGS
	return is_block_compressed(format) ? 8 : 0;
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
		.height = gpc_larger(desc->Height, 1),
		.depth = gpc_larger(desc->Depth, 1),
	};

	if (bits == 0 || bits > 128 || desc->Width > MAX_SIDE || desc->Height > MAX_SIDE ||
		desc->Depth > MAX_SIDE ||
		desc->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return bytes;
	for (unsigned int i = 0; i < n_levels; i++) {
		add_level(&bytes, &level, bits, desc->Height > 1, grain);
		if (level.width <= 1 && level.height == 1 && (has_layers || level.depth == 1))
			break;
		level.width = gpc_larger(level.width / 2, 1);
		level.height = gpc_larger(level.height / 2, 1);
		if (!has_layers)
			level.depth = gpc_larger(level.depth / 2, 1);
	}
	return bytes;
}
