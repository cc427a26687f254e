/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks every row of symbols.def up by one door, and prints what it got: "row object symbol", one a line.
 *
 * reach.c is built three times: as a program that does not link the driver, as one that does, and as a plugin that does.
 */
#ifndef DOORS_REACH_H
#define DOORS_REACH_H

__attribute__((visibility("default"))) int reach(const char *door);

#endif
