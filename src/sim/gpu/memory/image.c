/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The formats, as nvcc of CUDA 11 to 13 writes them, all numbers little-endian:
 *
 *      wrapper      magic, version, address of the fat binary
 *      fat binary   magic, u16 version, u16 size of this header, u64 size of what follows: entries
 *      entry        u16 kind, u16, u32 size of this header, u64 size of the code, 12 bytes, u32 arch, 8 bytes, u64 flags
 *      cubin        ELF; its flags have the architecture in the second byte, before ABI version 8 in the first
 *      PTX          .version 8.0 .target sm_90a
 */
#include "sim/gpu/memory/image.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define WRAPPER "\xb1\x43\x62\x46"
#define FAT     "\x50\xed\x55\xba"
#define ELF     "\x7f\x45\x4c\x46"

#define KIND_PTX   1
#define KIND_CUBIN 2

#define FLAG_ALONE  UINT64_C(0x100000) /* sm_90a */
#define FLAG_FAMILY UINT64_C(0x200000) /* sm_100f */

struct code {
	bool is_cubin;
	bool is_alone, is_family;
	int arch;
};

static uint64_t number(const void *bytes, size_t at, size_t size)
{
	uint64_t value = 0;

	memcpy(&value, (const char *)bytes + at, size);
	return value;
}

static bool fits(const struct code *code, int device)
{
	if (code->is_alone)
		return code->arch == device;
	return code->arch <= device &&
	       ((!code->is_cubin && !code->is_family) || code->arch / 10 == device / 10);
}

static bool is_better(const struct code *code, const struct code *than)
{
	return code->is_cubin != than->is_cubin ? code->is_cubin : code->arch > than->arch;
}

/* The best code of a fat binary; its architecture is 0 if none fits. */
static struct code best_of(const char *fat, int device)
{
	struct code best = { .arch = 0 };
	const char *at = fat + number(fat, 6, 2);
	const char *end = at + number(fat, 8, 8);

	while (at < end) {
		uint64_t kind = number(at, 0, 2);
		uint64_t flags = number(at, 40, 8);
		struct code code = {
			.is_cubin = kind == KIND_CUBIN,
			.is_alone = flags & FLAG_ALONE,
			.is_family = flags & FLAG_FAMILY,
			.arch = (int)number(at, 28, 4),
		};

		if ((kind == KIND_PTX || kind == KIND_CUBIN) && fits(&code, device) &&
			is_better(&code, &best))
			best = code;
		at += number(at, 4, 4) + number(at, 8, 8);
	}
	return best;
}

static struct code of_cubin(const char *elf)
{
	uint64_t flags = number(elf, 48, 4);

	return (struct code){ .is_cubin = true,
		.arch = (int)(number(elf, 8, 1) < 8 ? flags : flags >> 8) & 0xff };
}

/* The code of a text; its architecture is 0 if it is no PTX. */
static struct code of_text(const char *text)
{
	const char *target = text[0] == '/' || text[0] == '.' || text[0] == '\n'
				     ? strstr(text, ".target sm_")
				     : NULL;
	struct code code = { .arch = 0 };
	char *end;

	if (target) {
		code.arch = (int)strtol(target + strlen(".target sm_"), &end, 10);
		code.is_alone = *end == 'a';
		code.is_family = *end == 'f';
	}
	return code;
}

/* Compares byte by byte, because the image may end at the first that differs. */
static bool begins_with(const char *image, const char *magic)
{
	size_t i = 0;

	while (i < 4 && image[i] == magic[i])
		i++;
	return i == 4;
}

CUresult gpc_sim_image_choose(
	const void *image, const struct gpc_sim_model *model, struct gpc_sim_image *ret_image)
{
	int device = model->major * 10 + model->minor;
	const char *bytes = image;
	struct code code;
	bool is_fat;

	*ret_image = (struct gpc_sim_image){ .ptx = device, .binary = device };
	if (begins_with(bytes, WRAPPER))
		memcpy(&bytes, bytes + 8, sizeof bytes);
	is_fat = begins_with(bytes, FAT);
	code = is_fat                    ? best_of(bytes, device)
	       : begins_with(bytes, ELF) ? of_cubin(bytes)
					 : of_text(bytes);
	if (!is_fat && !code.arch)
		return CUDA_SUCCESS;
	if (!code.arch || !fits(&code, device))
		return is_fat || code.is_cubin ? CUDA_ERROR_NO_BINARY_FOR_GPU
					       : CUDA_ERROR_INVALID_PTX;
	*ret_image = (struct gpc_sim_image){ .ptx = code.arch,
		.binary = code.is_cubin ? code.arch : device };
	return CUDA_SUCCESS;
}
