/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses in code whose line is known. */
#ifndef GPC_TEST_STACK_LINES_H
#define GPC_TEST_STACK_LINES_H

#include <stdint.h>

/* An address in the call of this function. */
uint64_t lines_here(void);

/* Such an address in lines.c, and its line. */
uint64_t lines_of_old_table(uint32_t *ret_line);

#endif
