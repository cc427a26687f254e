/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The version of the library and its tools, for whom it is written once; a section of CHANGELOG.md has its name.
 */
#ifndef GPUCACHE_VERSION_H
#define GPUCACHE_VERSION_H

#define GPUCACHE_VERSION "0.2.0"

#endif
