/* SPDX-License-Identifier: Apache-2.0 */
/* What the targets share: random numbers, changes of text and bytes, and command lines. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The generator splitmix64. */
static uint64_t next(struct fuzz_random *random)
{
	uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

uint64_t fuzz_draw(struct fuzz_random *random, uint64_t n)
{
	return next(random) % n;
}

uint64_t fuzz_number(struct fuzz_random *random, uint64_t old)
{
	static const uint64_t bounds[] = { 0, 1, 7, 8, 15, 24, 63, 64, 72, 127, 128, 255, 256, 4095,
		4096, 65535, 65536, INT32_MAX, UINT32_MAX - 7, UINT32_MAX, INT64_MAX,
		UINT64_MAX - 4095, UINT64_MAX - 7, UINT64_MAX };

	switch (fuzz_draw(random, 6)) {
	case 0:
		return old + fuzz_draw(random, 3) - 1;
	case 1:
		return UINT64_C(1) << fuzz_draw(random, 64);
	case 2:
		return old ^ UINT64_C(1) << fuzz_draw(random, 64);
	case 3:
		return next(random) >> fuzz_draw(random, 64);
	default:
		return bounds[fuzz_draw(random, sizeof bounds / sizeof bounds[0])];
	}
}

void fuzz_poke(struct fuzz_random *random, struct fuzz_input *input, uint64_t at, unsigned width)
{
	uint64_t value = 0;

	if (at > input->size || width > input->size - at)
		return;
	memcpy(&value, input->data + at, width);
	value = fuzz_number(random, value);
	memcpy(input->data + at, &value, width);
}

void fuzz_replace(struct fuzz_input *input, size_t at, size_t gone, const void *data, size_t size)
{
	if (at > input->size || gone > input->size - at ||
		input->size - gone + size > FUZZ_MAX_INPUT)
		return;
	memmove(input->data + at + size, input->data + at + gone, input->size - at - gone);
	memcpy(input->data + at, data, size);
	input->size = input->size - gone + size;
}

/* Draws the place and the size of a piece of at most 60 bytes. */
static size_t draw_piece(struct fuzz_random *random, const struct fuzz_input *from, size_t *ret_at)
{
	size_t size = 1 + fuzz_draw(random, 60);

	*ret_at = fuzz_draw(random, from->size + 1);
	return size < from->size - *ret_at ? size : from->size - *ret_at;
}

void fuzz_mutate_text(struct fuzz_random *random, struct fuzz_input *input,
	const struct fuzz_input *other, const char *const words[])
{
	size_t at = fuzz_draw(random, input->size + 1);
	size_t n_words = 0;
	char number[32];
	size_t from;
	size_t size;

	while (words[n_words])
		n_words++;
	switch (fuzz_draw(random, 7)) {
	case 0:
		if (at < input->size)
			input->data[at] ^= (unsigned char)(1u << fuzz_draw(random, 8));
		break;
	case 1:
		size = draw_piece(random, input, &at);
		fuzz_replace(input, at, size, "", 0);
		break;
	case 2:
		size = draw_piece(random, other, &from);
		fuzz_replace(input, at, 0, other->data + from, size);
		break;
	case 3:
		snprintf(number, sizeof number, fuzz_draw(random, 2) ? "%llu" : "%lld",
			(unsigned long long)fuzz_number(random, 1000));
		fuzz_replace(input, at, strspn((const char *)input->data + at, "0123456789"),
			number, strlen(number));
		break;
	case 4:
		input->size = at;
		break;
	default:
		from = fuzz_draw(random, n_words);
		fuzz_replace(input, at, 0, words[from], strlen(words[from]));
		break;
	}
}

void fuzz_words_init(struct fuzz_words *words, const unsigned char *data, size_t size)
{
	char *found[FUZZ_MAX_WORDS] = { (char *)(uintptr_t) "tool" };
	char *rest;

	words->text = rest = malloc(size + 1);
	memcpy(rest, data, size);
	rest[size] = '\0';
	words->argc = 1;
	for (char *word; words->argc < FUZZ_MAX_WORDS && (word = strsep(&rest, " \n"));)
		found[words->argc++] = word;
	words->argv = calloc((size_t)words->argc + 1, sizeof *words->argv);
	memcpy(words->argv, found, (size_t)words->argc * sizeof *words->argv);
}

void fuzz_words_fini(struct fuzz_words *words)
{
	free(words->argv);
	free(words->text);
}
