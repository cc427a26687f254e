/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps keys to numbers: a hash table with linear probing, at most half full.
 *
 * Threads   One.
 * Failure   None: without memory the program ends (format/memory.h).
 */
#ifndef GPC_REPORT_MEMO_H
#define GPC_REPORT_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gpc_memo_row {
	uint64_t key; /* 0: free */
	uint64_t number;
};

struct gpc_memo {
	struct gpc_memo_row *rows; /* an all-zero memo is empty */
	size_t n_rows;             /* 0 or a power of two */
	size_t n;
};

void gpc_memo_fini(struct gpc_memo *memo);

/* Returns where the number of `key`, which must not be 0, is stored: 0 for a new key.  Valid until the next call. */
uint64_t *gpc_memo_at(struct gpc_memo *memo, uint64_t key);

/* The same with a hash of the text as key.  Two texts of the same hash would be one. */
uint64_t *gpc_memo_of(struct gpc_memo *memo, const char *text);

/* Returns the number of a text.  Texts get numbers from 0 in the order of first use. */
size_t gpc_memo_number(struct gpc_memo *memo, const char *text, bool *ret_is_new);

#endif
