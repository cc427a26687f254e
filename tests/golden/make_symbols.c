/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records its own stack and its own modules into the file argv[1], for gpumem-report to put names to: a real
 * program, a real build id; with "spoiled" a build id that is not this file's; with "python" the evaluation
 * loop of an interpreter twice in the stack, and three Python frames; linked with make_symbols_cxx.cc, functions
 * of C++ around the others.
 */
#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/format/recording_builder.h"

struct names {
	struct recording_builder *builder;
	int spoil;
};

/* The build id in the notes of an object; its size, 0 where there is none. */
static size_t find_build_id(
	const struct dl_phdr_info *info, const ElfW(Phdr) * segment, unsigned char *ret_id)
{
	const char *at = (const char *)(info->dlpi_addr + segment->p_vaddr);
	const char *end = at + segment->p_memsz;

	while (end - at >= (long)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const void *)at;
		const char *name = at + sizeof *note;
		const char *desc = name + ((note->n_namesz + 3) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
			memcmp(name, "GNU", 4) == 0 && note->n_descsz <= 32) {
			memcpy(ret_id, desc, note->n_descsz);
			return note->n_descsz;
		}
		at = desc + ((note->n_descsz + 3) & ~3u);
	}
	return 0;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct names *names = arg;
	struct {
		struct gpucache_module module;
		char path[512];
	} record = { .module.size = sizeof record, .module.bias = info->dlpi_addr };

	(void)size;
	if (info->dlpi_name[0] == '\0') {
		if (readlink("/proc/self/exe", record.path, sizeof record.path - 1) < 0)
			return 0;
	} else {
		strncpy(record.path, info->dlpi_name, sizeof record.path - 1);
	}
	for (int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE && !record.module.build_id_size)
			record.module.build_id_size = (uint32_t)find_build_id(
				info, &info->dlpi_phdr[i], record.module.build_id);
	if (names->spoil)
		record.module.build_id[0] ^= 0xff;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		record.module.start = info->dlpi_addr + segment->p_vaddr;
		record.module.end = record.module.start + segment->p_memsz;
		builder_append(names->builder, GPUCACHE_REGION_MODULES, &record, sizeof record);
	}
	return 0;
}

static const uint64_t python[] = {
	GPUCACHE_FRAME_PYTHON | GPUCACHE_FRAME_FROM_C | UINT64_C(1) << 32,
	GPUCACHE_FRAME_PYTHON | UINT64_C(2) << 32,
	GPUCACHE_FRAME_PYTHON | GPUCACHE_FRAME_FROM_C | UINT64_C(3) << 32,
};

__attribute__((noinline)) static void innermost_function(
	struct recording_builder *builder, unsigned n_python)
{
	void *frames[16];
	int n = backtrace(frames, 16);

	builder_stack(
		builder, (const uint64_t *)(const void *)frames, (unsigned)n, python, n_python);
	__asm__ volatile("");
}

/* Named as CPython's evaluation loop. */
void _PyEval_EvalFrameDefault(struct recording_builder *builder, int depth);

__attribute__((noinline)) void callback_of_a_library(struct recording_builder *builder)
{
	_PyEval_EvalFrameDefault(builder, 1);
	__asm__ volatile("");
}

__attribute__((noinline)) void _PyEval_EvalFrameDefault(
	struct recording_builder *builder, int depth)
{
	if (depth == 1)
		innermost_function(builder, 3);
	else
		callback_of_a_library(builder);
	__asm__ volatile("");
}

__attribute__((always_inline)) static inline void inlined_function(
	struct recording_builder *builder)
{
	innermost_function(builder, 0);
	__asm__ volatile("");
}

__attribute__((noinline)) void outer_function(void *builder)
{
	inlined_function(builder);
	__asm__ volatile("");
}

/* There in a program with C++. */
extern void call_through_cxx(void (*next)(void *), void *arg) __attribute__((weak));

int main(int argc, char **argv)
{
	struct recording_builder builder;
	struct names names = { &builder, argc > 2 && strcmp(argv[2], "spoiled") == 0 };

	if (argc < 2)
		return 2;
	builder_init(&builder);
	builder.counters[0].context = 1;
	for (unsigned i = 0; i < 3; i++)
		builder_code(&builder, (const char *[]){ "inner", "middle", "outer" }[i],
			"/x/main.py", 0x0309, 10 + i, "", 0);
	if (argc > 2 && strcmp(argv[2], "python") == 0)
		_PyEval_EvalFrameDefault(&builder, 0);
	else if (call_through_cxx)
		call_through_cxx(outer_function, &builder);
	else
		outer_function(&builder);
	dl_iterate_phdr(add_object, &names);
	builder_live(&builder, 1000, 1024, 1, 1);
	builder_write(&builder, argv[1]);
	builder_fini(&builder);
	return 0;
}
