/* SPDX-License-Identifier: Apache-2.0 */
#include "base/env.h"

#include <stdlib.h>

const char *gpc_env_get(const char *name)
{
	const char *value = secure_getenv(name);

	return value && *value ? value : NULL;
}
