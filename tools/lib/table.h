/* SPDX-License-Identifier: Apache-2.0 */
/* uthash, which without memory ends the program (format/memory.h). */
#ifndef GPC_LIB_TABLE_H
#define GPC_LIB_TABLE_H

#include "format/memory.h"

#define uthash_malloc(size) gpc_new(1, size)
#include <uthash.h>

#endif
