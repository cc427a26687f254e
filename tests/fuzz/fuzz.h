/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small deterministic fuzzer: an input depends only on the seed, its number and the corpus, so every failure can be
 * reproduced.
 *
 *      corpus --(seed, number)--> target.mutate --> input --> target.run, in a child process
 *                                                                    |
 *      a failure:  the sanitizers report an error, FUZZ_EXPECT is false, a signal, 2 s of CPU time, too much memory
 *
 * Threads     One.
 * Failure     Saves a failing input to a file, and prints the command that runs it again.
 * Limits      Coverage does not guide the mutations; they know the formats instead.
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
	const char *name; /* also the name of its folder in the corpus */
	unsigned share;   /* percent of the time or of the inputs that this target gets */
	bool is_packed;   /* the files of its corpus are gzipped */
	/* Runs the code under test; ends the process on a failure. */
	void (*run)(const unsigned char *data, size_t size);
	/* Changes `input` once; may take pieces from `other`. */
	void (*mutate)(struct fuzz_random *random, struct fuzz_input *input,
		const struct fuzz_input *other);
	/* Truncates `input` at its k-th place of interest; false if it has no k-th one.  May be NULL. */
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

/* Draws a number that often breaks programs: a bound of a type, a power of two, `old` with one bit or by 1 changed. */
uint64_t fuzz_number(struct fuzz_random *random, uint64_t old);

/* Replaces the number of `width` 1, 2, 4 or 8 bytes at `at` by a fuzz_number(), if it is inside the input. */
void fuzz_poke(struct fuzz_random *random, struct fuzz_input *input, uint64_t at, unsigned width);

/* Replaces `gone` bytes at `at` by `size` bytes of `data`; does nothing if they do not fit. */
void fuzz_replace(struct fuzz_input *input, size_t at, size_t gone, const void *data, size_t size);

/* Changes a text once: a bit, a number, a word of the NULL-terminated list, a piece of `other`, or its length. */
void fuzz_mutate_text(struct fuzz_random *random, struct fuzz_input *input,
	const struct fuzz_input *other, const char *const words[]);

/* Returns the folder for files of the targets. */
const char *fuzz_folder(void);

/* Writes a file into that folder.  Returns its path, which is valid until the next call. */
const char *fuzz_file(const char *name, const unsigned char *data, size_t size);

/* Reads the file as a trace and replays it, as gpumem-replay does with a recording or a trace. */
void fuzz_read_trace(const char *path);

/* The words of a command line, as main gets them.  The array has no room to spare, so the sanitizer sees overreads. */
#define FUZZ_MAX_WORDS 64
struct fuzz_words {
	int argc;
	char **argv;
	char *text;
};
void fuzz_words_init(struct fuzz_words *words, const unsigned char *data, size_t size);
void fuzz_words_fini(struct fuzz_words *words);

/* Marks functions that the sanitizers look up by name; hidden functions are not found. */
#define FUZZ_FOR_SANITIZER __attribute__((visibility("default"), used))

/* Ends the process if the condition is false. */
#define FUZZ_EXPECT(condition) ((condition) ? (void)0 : fuzz_broken(#condition, __FILE__, __LINE__))
void fuzz_broken(const char *condition, const char *file, int line) __attribute__((noreturn));

#endif
