/* SPDX-License-Identifier: Apache-2.0 */
/* What the makers of recordings share. */
#ifndef GPC_TESTS_GOLDEN_MAKE_RECORDINGS_H
#define GPC_TESTS_GOLDEN_MAKE_RECORDINGS_H

#include "tests/unit/format/recording_builder.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

/* 3.11's location table of a function whose instruction at byte 0 is on its first line, byte 4 on the third. */
extern const unsigned char lines_311[6];

uint64_t python_frame(uint32_t code, uint32_t offset, int from_c);
void add_device(struct recording_builder *b, double look_s);
void add_counters(struct recording_builder *b);

/* make_torch.c; into the folder beside `dir`. */
void make_torch(const char *dir);
void make_torch_oom(const char *dir);
void make_torch_use(const char *dir);
void make_torch_kept(const char *dir);
void make_torch_results(const char *dir);
void make_torch_drawn(const char *dir);
void make_torch_pass(const char *dir);
void make_torch_pinned(const char *dir);

#endif
