/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of words from verdict.def; a static assertion counts its rows. */
#include "model/verdict.h"

#include <assert.h>

#include "gpucache_format.h"

enum {
#define VERDICT(name, word, meaning) ROW_##name,
#include "model/verdict.def"
#undef VERDICT
	N_ROWS
};
static_assert(N_ROWS == (int)GPUCACHE_VERDICT_COUNT, "each verdict has a row in verdict.def");

static const struct {
	const char *word;
	const char *meaning;
} verdicts[] = {
#define VERDICT(name, word, meaning) [GPUCACHE_VERDICT_##name] = { word, meaning },
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
