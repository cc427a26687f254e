/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Looks up every row of symbols.def by one door, and prints the result, a line per row: "row object symbol".
 *
 * reach.c is built three times: as a program without and with the driver linked, and as a plugin with it.
 */
#ifndef DOORS_REACH_H
#define DOORS_REACH_H

__attribute__((visibility("default"))) int reach(const char *door);

#endif
