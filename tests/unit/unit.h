/* SPDX-License-Identifier: Apache-2.0 */
/* cmocka needs four headers before its own, and include sorting would move them: this is the one place. */
#ifndef GPC_TESTS_UNIT_UNIT_H
#define GPC_TESTS_UNIT_UNIT_H

/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
/* clang-format on */

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
