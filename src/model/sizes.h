/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes that several judge by: of the driver, and of programs. */
#ifndef GPC_MODEL_SIZES_H
#define GPC_MODEL_SIZES_H

#include "base/bytes.h"

/* Of the driver: less than a step serves no request. */
#define GPC_DRIVER_STEP (2 * GPC_MIB)

/* A site with this many blocks is in a loop: no network has as many equal layers. */
#define GPC_MANY_BLOCKS 160u

#endif
