/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums and the like of what ranks have: one loop for each type, made by ROWS.  Half precision is computed in float and
 * rounded after each step, as NCCL does.  Types of 8 bits with a sign, an exponent and a mantissa are not reduced.
 */
#include <stdint.h>
#include <string.h>

#include "simcuda/lib_nccl.h"

/* bfloat16 is the upper half of a float. */
static float of_bfloat16(uint16_t half)
{
	uint32_t bits = (uint32_t)half << 16;
	float value;

	memcpy(&value, &bits, sizeof value);
	return value;
}

/* To the nearest, to even; what is no number stays none. */
static uint16_t to_bfloat16(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof bits);
	if (value != value)
		return (uint16_t)(bits >> 16 | 0x40);
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#define SAME(value) (value)

/* ROW(name, as it lies there, as it is added, as it is compared, from there, to there): integers wrap around. */
#define INTEGERS                                                    \
	ROW(ncclInt8, int8_t, uint32_t, int8_t, SAME, (int8_t))     \
	ROW(ncclUint8, uint8_t, uint32_t, uint8_t, SAME, (uint8_t)) \
	ROW(ncclInt32, int32_t, uint32_t, int32_t, SAME, (int32_t)) \
	ROW(ncclUint32, uint32_t, uint32_t, uint32_t, SAME, SAME)   \
	ROW(ncclInt64, int64_t, uint64_t, int64_t, SAME, (int64_t)) \
	ROW(ncclUint64, uint64_t, uint64_t, uint64_t, SAME, SAME)
#ifdef __FLT16_MANT_DIG__
#define HALF ROW(ncclFloat16, _Float16, float, float, (float), (_Float16))
#else
#define HALF
#endif
#define FLOATS                                                       \
	HALF ROW(ncclFloat32, float, float, float, SAME, SAME)       \
		ROW(ncclFloat64, double, double, double, SAME, SAME) \
			ROW(ncclBfloat16, uint16_t, float, float, of_bfloat16, to_bfloat16)

size_t nccl_bytes_of(ncclDataType_t type)
{
	static const unsigned char bytes[] = {
		[ncclInt8] = 1,
		[ncclUint8] = 1,
		[ncclInt32] = 4,
		[ncclUint32] = 4,
		[ncclInt64] = 8,
		[ncclUint64] = 8,
		[ncclFloat16] = 2,
		[ncclFloat32] = 4,
		[ncclFloat64] = 8,
		[ncclBfloat16] = 2,
		[ncclFloat8e4m3] = 1,
		[ncclFloat8e5m2] = 1,
	};

	return (size_t)type < sizeof bytes ? bytes[type] : 0;
}

#define ROW(name, there, sum, number, of, to)                                         \
	static void reduce_##name(ncclRedOp_t op, there *a, const there *b, size_t n) \
	{                                                                             \
		for (size_t i = 0; i < n; i++) {                                      \
			const number x = (number)of(a[i]);                            \
			const number y = (number)of(b[i]);                            \
			if (op == ncclMax || op == ncclMin)                           \
				a[i] = (op == ncclMax) == (y > x) ? b[i] : a[i];      \
			else if (op == ncclProd)                                      \
				a[i] = to((sum)x * (sum)y);                           \
			else                                                          \
				a[i] = to((sum)x + (sum)y);                           \
		}                                                                     \
	}                                                                             \
	static void divide_##name(there *a, size_t n, int by)                         \
	{                                                                             \
		for (size_t i = 0; i < n; i++)                                        \
			a[i] = to((number)of(a[i]) / (number)by);                     \
	}
INTEGERS FLOATS
#undef ROW

	bool
	nccl_reduce(
		ncclDataType_t type, ncclRedOp_t op, void *to_bytes, const void *from, size_t size)
{
	switch ((int)type) {
#define ROW(name, there, sum, number, of, to)                            \
	case name:                                                       \
		reduce_##name(op, to_bytes, from, size / sizeof(there)); \
		return true;
		INTEGERS FLOATS
#undef ROW
			default : return false;
	}
}

bool nccl_divide(ncclDataType_t type, void *to_bytes, size_t size, int by)
{
	switch ((int)type) {
#define ROW(name, there, sum, number, of, to)                      \
	case name:                                                 \
		divide_##name(to_bytes, size / sizeof(there), by); \
		return true;
		INTEGERS FLOATS
#undef ROW
			default : return false;
	}
}
