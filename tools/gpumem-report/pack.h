/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols that lie beside their recording, so that it can be read where the program's files are not.
 *
 *      run.gpucache    run.gpucache.symbols    { "schema": "gpumem.symbols/1", "recording": {who},
 *                                                "addresses": { "0x401101": [ {function, file, line}, ...
 *
 * Invariants  1 Symbols of another recording are never used: wrong names are worse than none.
 *             2 Nothing in the file is believed: what is no symbol is left out.
 * Threads     One.
 * Failure     NULL: there is no such file, or it is of another recording, which is complained of.
 * Limits      Files of at most 256 MiB.
 */
#ifndef GPC_REPORT_PACK_H
#define GPC_REPORT_PACK_H

#include "tools/gpumem-report/symbolize.h"

#define GPC_PACK_SCHEMA "gpumem.symbols/1"
#define GPC_PACK_SUFFIX ".symbols"

struct gpc_pack;

struct gpc_pack *gpc_pack_open(const struct gpc_recording *recording);
void gpc_pack_close(struct gpc_pack *pack);

/* The call that returns to `address`, as gpc_symbols_find; an empty list where it is not packed. */
struct gpc_symbol_list gpc_pack_find(const struct gpc_pack *pack, uint64_t address);

/* Who the recording is of, as an object of the file; the caller owns it. */
struct json_object *gpc_pack_identity(const struct gpc_recording *recording);

#endif
