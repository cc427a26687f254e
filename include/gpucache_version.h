/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library and its tools. */
#ifndef GPUCACHE_VERSION_H
#define GPUCACHE_VERSION_H

#define GPUCACHE_VERSION "0.1.0"

#endif
