/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of words from verdict.def; an enum proves that no row is missing. */
#include "model/verdict.h"

#include <assert.h>

#include "gpucache_format.h"

/* The place of each row in verdict.def. */
enum row {
#define VERDICT(name, word, meaning) ROW_##name,
#include "model/verdict.def"
#undef VERDICT
	N_ROWS,
};

#define VERDICT(name, word, meaning) \
	static_assert((int)ROW_##name == (int)GPUCACHE_VERDICT_##name, "verdict.def: order");
#include "model/verdict.def"
#undef VERDICT
static_assert((int)N_ROWS == (int)GPUCACHE_VERDICT_COUNT, "verdict.def: a row is missing");

static const struct {
	const char *word;
	const char *meaning;
} verdicts[] = {
#define VERDICT(name, word, meaning) { word, meaning },
#include "model/verdict.def"
#undef VERDICT
};

const char *gpc_verdict_word(unsigned verdict)
{
	return verdicts[verdict < GPUCACHE_VERDICT_COUNT ? verdict : GPUCACHE_VERDICT_NONE].word;
}

const char *gpc_verdict_meaning(unsigned verdict)
{
	return verdicts[verdict < GPUCACHE_VERDICT_COUNT ? verdict : GPUCACHE_VERDICT_NONE].meaning;
}

const char *gpc_strength_word(unsigned strength)
{
	static const char *const words[] = {
		[GPUCACHE_STRENGTH_NONE] = "unknown",
		[GPUCACHE_STRENGTH_POSSIBLE] = "possible",
		[GPUCACHE_STRENGTH_LIKELY] = "likely",
		[GPUCACHE_STRENGTH_CERTAIN] = "certain",
	};

	return words[strength <= GPUCACHE_STRENGTH_CERTAIN ? strength : GPUCACHE_STRENGTH_NONE];
}
