/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pickles of plain data, as PyTorch dumps its snapshots: dicts, lists, tuples, text, numbers.
 *
 * A pickle is a program for a stack machine, and Python's runs whatever function it names.  This one knows no opcode that
 * names, calls or builds anything: a pickle with one is refused, not skipped.
 *
 * Invariants  1 Nothing of the pickle runs.  2 What comes out has no cycles, and is at most GPC_UNPICKLE_DEPTH deep.
 * Threads     One.
 * Failure     NULL, and `why` says what, with the offset.
 * Limits      Protocols 2 to 5.  Numbers of 64 bits; longer ones are refused.  Bytes become text.
 */
#ifndef GPC_REPLAY_TRACE_PICKLE_H
#define GPC_REPLAY_TRACE_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define GPC_UNPICKLE_DEPTH 64

struct json_object;

/* data[0 .. size): the caller puts what it gets. */
struct json_object *gpc_unpickle(const uint8_t *data, size_t size, struct gpc_text *why);

#endif
