/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads pickles of plain data, such as PyTorch's snapshots: dicts, lists, tuples, text, numbers.
 *
 * A pickle is a program for a stack machine, and Python's machine calls any function that the pickle names.  This
 * machine has no opcode that names, calls or builds an object.  It refuses a pickle with such an opcode as a whole.
 *
 * Invariants  1 No code of the pickle runs.  2 The result has no cycles, and is at most GPC_UNPICKLE_DEPTH deep.
 * Threads     One.
 * Failure     Returns NULL; `why` has the message, with the offset.
 * Limits      Protocols 2 to 5.  Refuses numbers of more than 64 bits.  Returns bytes as text, and tuples as lists.
 */
#ifndef GPC_REPLAY_TRACE_PICKLE_H
#define GPC_REPLAY_TRACE_PICKLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define GPC_UNPICKLE_DEPTH 64

struct json_object;

/* Reads data[0 .. size).  The caller owns the result (json_object_put). */
struct json_object *gpc_unpickle(const uint8_t *data, size_t size, struct gpc_text *why);

#endif
