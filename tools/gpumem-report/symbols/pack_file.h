/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of symbols next to the recording, for machines that lack the program's files.
 *
 *      run.gpucache    run.gpucache.symbols    { "schema": "gpumem.symbols/1", "recording": {...},
 *                                                "addresses": { "0x401101": [ {function, file, line}, ...
 *
 * Invariants  1 Symbols of another recording are never used: its addresses have other names.
 *             2 The file is untrusted: anything that is not a symbol is skipped.
 * Threads     One.
 * Failure     Returns NULL if there is no such file, or, with a message, if it is of another recording.
 * Limits      Files of at most 256 MiB.
 */
#ifndef GPC_REPORT_PACK_H
#define GPC_REPORT_PACK_H

#include "tools/gpumem-report/symbols/symbolize.h"

#define GPC_PACK_SCHEMA "gpumem.symbols/1"
#define GPC_PACK_SUFFIX ".symbols"

/* Returns the file's object "addresses"; json_object_put() it. */
struct json_object *gpc_pack_open(const struct gpc_recording *recording);

/* Returns the symbols of the call that returns to `address`; none if the address is not packed, or `pack` is NULL. */
struct gpc_symbol_list gpc_pack_find(const struct json_object *pack, uint64_t address);

/* Makes the object that identifies the recording in the file, as its member "recording"; the caller owns it. */
struct json_object *gpc_pack_identity(const struct gpc_recording *recording);

#endif
