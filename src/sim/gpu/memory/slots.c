/* SPDX-License-Identifier: Apache-2.0 */
/* First fit in a bit map.  A tree of the longest free runs makes a search fast, for replays of a million requests. */
#include "sim/gpu/memory/slots.h"

/* The first of n adjacent free slots within a word; 64 if there are none, and then *ret_longest is the longest run. */
static uint32_t find_in_word(uint64_t used, uint32_t n, uint32_t *ret_longest)
{
	uint32_t longest = 0;

	for (uint32_t i = 0; i < 64;) {
		uint64_t rest = used >> i;
		uint32_t n_free = rest ? (uint32_t)__builtin_ctzll(rest) : 64 - i;

		if (n_free >= n)
			return i;
		longest = n_free > longest ? n_free : longest;
		rest >>= n_free;
		i += n_free + (rest == UINT64_MAX ? 64 : (uint32_t)__builtin_ctzll(~rest));
	}
	*ret_longest = longest;
	return 64;
}

static struct gpc_sim_run run_of_word(uint64_t used)
{
	uint32_t longest = 64;

	if (!used)
		return (struct gpc_sim_run){ 64, 64, 64 };
	(void)find_in_word(used, 64, &longest);
	return (struct gpc_sim_run){
		.head = (uint16_t)__builtin_ctzll(used),
		.tail = (uint16_t)__builtin_clzll(used),
		.longest = (uint16_t)longest,
	};
}

/* Combines the runs of two adjacent nodes of `width` slots each. */
static struct gpc_sim_run join(struct gpc_sim_run low, struct gpc_sim_run high, uint32_t width)
{
	uint32_t across = (uint32_t)low.tail + high.head;
	uint32_t longest = low.longest > high.longest ? low.longest : high.longest;

	return (struct gpc_sim_run){
		.head = (uint16_t)(low.head == width ? width + high.head : low.head),
		.tail = (uint16_t)(high.tail == width ? width + low.tail : high.tail),
		.longest = (uint16_t)(across > longest ? across : longest),
	};
}

/* Updates the nodes above the leaves of these words. */
static void update(struct gpc_sim_small *small, uint32_t first_word, uint32_t last_word)
{
	uint32_t from = GPC_SIM_WORDS + first_word;
	uint32_t to = GPC_SIM_WORDS + last_word;

	for (uint32_t width = 64; from > 1; width *= 2) {
		from /= 2;
		to /= 2;
		for (uint32_t k = from; k <= to; k++)
			small->runs[k] = join(small->runs[2 * k], small->runs[2 * k + 1], width);
	}
}

void gpc_sim_slots_init(struct gpc_sim_small *small)
{
	for (uint32_t word = 0; word < GPC_SIM_WORDS; word++)
		small->runs[GPC_SIM_WORDS + word] = run_of_word(0);
	update(small, 0, GPC_SIM_WORDS - 1);
}

uint32_t gpc_sim_slots_find(const struct gpc_sim_small *small, uint32_t n)
{
	const struct gpc_sim_run *runs = small->runs;
	uint32_t width = GPC_SIM_SLOTS;
	uint32_t first = 0; /* the first slot of node k */
	uint32_t longest;

	if (runs[1].longest < n)
		return GPC_SIM_SLOTS;
	for (uint32_t k = 1; k < GPC_SIM_WORDS;) {
		width /= 2;
		k *= 2;
		if (runs[k].longest >= n)
			continue;
		first += width;
		if (runs[k].tail + runs[k + 1].head >= n)
			return first - runs[k].tail;
		k++;
	}
	return first + find_in_word(small->used[first / 64], n, &longest);
}

void gpc_sim_slots_flip(struct gpc_sim_small *small, uint32_t first, uint32_t n)
{
	const uint32_t end = first + n;

	for (uint32_t i = first; i < end;) {
		uint32_t word = i / 64;
		uint32_t next = (word + 1) * 64 < end ? (word + 1) * 64 : end;

		small->used[word] ^= UINT64_MAX >> (64 - (next - i)) << (i % 64);
		small->runs[GPC_SIM_WORDS + word] = run_of_word(small->used[word]);
		i = next;
	}
	update(small, first / 64, (end - 1) / 64);
}
