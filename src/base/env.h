/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the environment by secure_getenv, which finds no variable in a setuid program.  A concurrent setenv of the host
 * may move the environment, so callers read it at the first CUDA call and never later.
 */
#ifndef GPC_BASE_ENV_H
#define GPC_BASE_ENV_H

#include <stdlib.h>

/* The value of the variable; NULL if the variable is unset or empty, or if the program is setuid. */
static inline const char *gpc_env_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}

#endif
