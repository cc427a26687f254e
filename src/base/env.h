/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment, read only.  secure_getenv: a setuid program gets nothing from its caller
 * through us. Not safe against a host that calls setenv at the same moment; we read at the first
 * CUDA call only.
 */
#ifndef GPC_BASE_ENV_H
#define GPC_BASE_ENV_H

/* The value, or NULL where it is not set, empty, or not to be trusted. */
const char *gpc_env_get(const char *name);

#endif
