/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, reproducible by a printed seed, and sizes as programs request them. */
#ifndef GPC_TESTS_MODEL_RANDOM_H
#define GPC_TESTS_MODEL_RANDOM_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/bytes.h"

struct random {
	uint64_t x;
};

static inline struct random random_start(uint64_t seed, uint64_t stream)
{
	return (struct random){ .x = (seed * UINT64_C(0x9e3779b97f4a7c15) + stream + 1) | 1 };
}

/* xorshift64*: good enough to choose operations by. */
static inline uint64_t random_next(struct random *random)
{
	random->x ^= random->x >> 12;
	random->x ^= random->x << 25;
	random->x ^= random->x >> 27;
	return random->x * UINT64_C(0x2545f4914f6cdd1d);
}

/* 0 .. n - 1 */
static inline uint64_t random_below(struct random *random, uint64_t n)
{
	return (random_next(random) >> 11) % n;
}

/* from .. to, each power of two as likely as the next. */
static inline uint64_t random_log(struct random *random, uint64_t from, uint64_t to)
{
	uint64_t span = from;

	while (span < to && random_below(random, 64 - (uint64_t)__builtin_clzll(to / from)) != 0)
		span *= 2;
	span = span < to ? span : to;
	return span / 2 + 1 + random_below(random, span - span / 2);
}

/* Most are small, most bytes are in the few large ones: 512 B to 200 MiB. */
static inline uint64_t random_size(struct random *random)
{
	uint64_t dice = random_below(random, 100);

	if (dice < 60)
		return random_log(random, 512, GPC_MIB);
	if (dice < 85)
		return GPC_MIB + random_below(random, 9 * GPC_MIB);
	if (dice < 97)
		return 10 * GPC_MIB + random_below(random, 40 * GPC_MIB);
	return 50 * GPC_MIB + random_below(random, 150 * GPC_MIB);
}

/* A number from the environment, or else `otherwise`. */
static inline uint64_t number_from_env(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

/* Returns SEED, or a new seed each time; prints it, so that a failure can be reproduced. */
static inline uint64_t seed_of_this_run(const char *what)
{
	uint64_t seed = number_from_env("SEED", (uint64_t)time(NULL));

	printf("%s: SEED=%llu\n", what, (unsigned long long)seed);
	return seed;
}

#endif
