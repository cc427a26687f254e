/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the process says about a failure: a line when it happens, and the whole text if the process ends because of it.
 *
 * An end may come in any thread, in a handler of a signal, and with locks held.  So the text is written when the request
 * fails, and at the end it is only printed:
 *
 *      failure ----write---> text ---publish---> the text that the end prints ---say---> stderr
 *                                                    ^ withdrawn once the program has recovered
 *
 * A text about a failure after which the program went on for long says so in a line above it: the end may have another
 * reason.
 *
 * Invariants  1 A text is printed at most once, whatever threads end the process at once.
 *             2 gpc_notice_say is async-signal-safe, takes no lock, and waits a second at most.
 * Ordering    A text is complete before it is published (release), and not changed until another one was: of two buffers
 *             for each device the one that is not published is filled.  gpc_notice_say first forbids to publish, then
 *             takes what is published.
 */
#ifndef GPC_RUNTIME_RESCUE_NOTICE_H
#define GPC_RUNTIME_RESCUE_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "oom/short_form.h"

struct gpc_device;

struct gpc_notice {
	uint64_t number; /* of the failure */
	uint64_t time_ns;
	uint64_t n_mallocs;    /* requests that had succeeded on the device by then */
	uint64_t direct_bytes; /* and what it held beside its cache; of is_asked */
	bool is_asked; /* of no failure (asked.h): printed only if nothing was requested since, and soon */
	bool is_caught; /* the program went on, with less: printed only if it ends soon */
	bool is_hosted; /* whoever runs the program catches what it raises (hosts.h) */
	struct gpc_answer answer;
	size_t len; /* 0: nothing is to be said */
	char text[GPC_SHORT_SIZE];
};

/* Writes the text about `oom`.  Needs much stack; the caller holds no lock, because it reads files. */
void gpc_notice_write(
	struct gpc_device *device, const struct gpucache_oom *oom, struct gpc_notice *ret_notice);

/* The end prints this text about the device, or none (NULL).  The caller holds runtime.lock. */
void gpc_notice_publish(const struct gpc_device *device, const struct gpc_notice *notice);

/* The same for a text of asked.h, unless one about a failure is published. */
void gpc_notice_publish_asked(const struct gpc_device *device, const struct gpc_notice *notice);

/* Around a failure, until its text is published: an end in another thread waits for it. */
void gpc_notice_begin(void);
void gpc_notice_end(void);

/* Prints a line about a failure, with the cause that its text names, the first time it is called. */
void gpc_notice_say_first(const struct gpc_device *device, const struct gpucache_oom *oom,
	const struct gpc_notice *notice);

/* Prints this text now. */
void gpc_notice_say_now(const struct gpc_notice *notice);

/* The process ends with an error: prints what is published.  Any thread, any time, any number of times. */
void gpc_notice_say(void);

/* A program that still runs this long after a failure has survived it. */
#define GPC_SURVIVED_NS (UINT64_C(60) * 1000000000)

#endif
