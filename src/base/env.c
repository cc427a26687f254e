/* SPDX-License-Identifier: Apache-2.0 */
/* getenv for a guest: a setuid process must not be influenced through us. */
#include "base/env.h"

#include <stdlib.h>

const char *gpc_env_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}
