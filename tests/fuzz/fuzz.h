/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small deterministic fuzzer: an input depends only on the seed, its number and the corpus, so every failure can be
 * reproduced.
 *
 *      corpus --(seed, number)--> mutations of the target --> input --> target.run, in a child
 *                                                                          |
 *                  report by the sanitizers, a signal, 2 s of CPU time or too much memory: a failure
 *
 * Threads     One.
 * Failure     Saves a failing input to a file, and prints the command that runs it again.
 * Limits      Not guided by coverage: the mutations know the formats instead.
 */
#ifndef GPC_TESTS_FUZZ_H
#define GPC_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FUZZ_MAX_INPUT ((size_t)4 << 20)

struct fuzz_input {
	unsigned char *data; /* room for FUZZ_MAX_INPUT bytes */
	size_t size;
};

struct fuzz_random {
	uint64_t state;
};

struct fuzz_target {
	const char *name; /* also of its folder in the corpus */
	unsigned share;   /* of the time, in percent */
	bool is_packed;   /* its corpus is gzipped */
	/* Runs the code under test; ends the process on a failure. */
	void (*run)(const unsigned char *data, size_t size);
	/* Changes `input` once; may take pieces from `other`. */
	void (*mutate)(struct fuzz_random *random, struct fuzz_input *input,
		const struct fuzz_input *other);
	/* Cuts `input` at its k-th place of interest; false if there is none.  May be NULL. */
	bool (*cut)(struct fuzz_input *input, unsigned k);
};

extern const struct fuzz_target fuzz_recording;
extern const struct fuzz_target fuzz_config;
extern const struct fuzz_target fuzz_sim;
extern const struct fuzz_target fuzz_trace;
extern const struct fuzz_target fuzz_pack;
extern const struct fuzz_target fuzz_object;
extern const struct fuzz_target fuzz_arguments;
extern const struct fuzz_target fuzz_replay;
extern const struct fuzz_target fuzz_tag;

/* Returns a random number below n; n > 0. */
uint64_t fuzz_draw(struct fuzz_random *random, uint64_t n);

/* A number that programs stumble over: a bound, one beside it, a power of two, `old` and one. */
uint64_t fuzz_number(struct fuzz_random *random, uint64_t old);

/* Stores a fuzz_number() of 1, 2, 4 or 8 bytes at `at`, if that is inside the input. */
void fuzz_poke(struct fuzz_random *random, struct fuzz_input *input, uint64_t at, unsigned width);

/* Replaces `gone` bytes at `at` by `size` bytes of `data`. */
void fuzz_replace(struct fuzz_input *input, size_t at, size_t gone, const void *data, size_t size);

/* Mutates a text by bits, numbers, words of a NULL-terminated list, and pieces of either input. */
void fuzz_mutate_text(struct fuzz_random *random, struct fuzz_input *input,
	const struct fuzz_input *other, const char *const words[]);

/* The fuzzer's folder; and writes a file into it, whose path is valid until the next call. */
const char *fuzz_folder(void);
const char *fuzz_file(const char *name, const unsigned char *data, size_t size);

/* Reads the file as gpumem-replay does, which takes recordings too. */
void fuzz_read_trace(const char *path);

/* The words of a command line, in an array of its own size, as main gets them. */
#define FUZZ_MAX_WORDS 64
struct fuzz_words {
	int argc;
	char **argv;
	char *text;
};
void fuzz_words_init(struct fuzz_words *words, const unsigned char *data, size_t size);
void fuzz_words_fini(struct fuzz_words *words);

/* For functions that the sanitizers look up by name, which must therefore not be hidden. */
#define FUZZ_FOR_SANITIZER __attribute__((visibility("default"), used))

/* Ends the process if the condition is false. */
#define FUZZ_EXPECT(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
void fuzz_broken(const char *condition, const char *file, int line) __attribute__((noreturn));

#endif
