/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library and its tools, written only here.  CHANGELOG.md has a section of that name. */
#ifndef GPUCACHE_VERSION_H
#define GPUCACHE_VERSION_H

#define GPUCACHE_VERSION "0.2.0"

#endif
