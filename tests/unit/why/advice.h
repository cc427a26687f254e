/* SPDX-License-Identifier: Apache-2.0 */
/* What is advised about a failure, as text. */
#ifndef GPC_TESTS_UNIT_WHY_ADVICE_H
#define GPC_TESTS_UNIT_WHY_ADVICE_H

#include "tests/unit/unit.h"
#include "tests/unit/why/scene.h"

static char advice[2048]; /* each on a line, with how far it reaches */

static inline void add_number(void *self, uint32_t stack, struct gpc_text *text)
{
	gpc_text_add(text, "model.py:%u", stack);
}

static const struct gpc_site_names by_number = { .add = add_number };

/* Writes the advice to facts that are judged already. */
static inline unsigned say(const struct scene *s)
{
	struct gpc_text text = gpc_text_init(advice, sizeof advice);
	const char *reach;
	unsigned n;

	for (n = 0; gpc_say_try(&text, &s->facts, &s->answer, &by_number, n, &reach); n++)
		gpc_text_add(&text, " [%s]\n", reach);
	return n;
}

/* Finds the cause, which has to be `cause`, and writes the advice. */
static inline unsigned advise(struct scene *s, enum gpucache_verdict cause)
{
	judge(s);
	assert_int_equal(s->answer.cause, cause);
	return say(s);
}

/* The advice to facts that have changed. */
static inline unsigned say_anew(struct scene *s)
{
	s->answer = gpc_why(&s->facts);
	return say(s);
}

/* One site keeps 300 blocks, and asks for the next. */
static inline void grow(struct scene *s)
{
	s->oom.growth_bytes = s->oom.growth_total = s->oom.growth_held = 4 * GPC_GIB;
	s->oom.growth_stack = 9;
	s->oom.growth_blocks = s->oom.n_free = 300;
	s->oom.stack = s->oom.growth_stack;
}

static inline void says(const char *what)
{
	if (!strstr(advice, what))
		fail_msg("%s", advice);
}

#endif
