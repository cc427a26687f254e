/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment, read only, through secure_getenv: in a setuid program nothing is set.  Not safe
 * against a concurrent setenv of the host: read it at the first CUDA call, and never later.
 */
#ifndef GPC_BASE_ENV_H
#define GPC_BASE_ENV_H

#include <stdlib.h>

/* The value, or NULL if it is unset, empty, or not to be trusted. */
static inline const char *gpc_env_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

#endif
