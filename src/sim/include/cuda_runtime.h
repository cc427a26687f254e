/* SPDX-License-Identifier: Apache-2.0 */
/* A <cuda_runtime.h> for machines without a toolkit; see cuda_runtime_api.h. */
#ifndef SIMCUDA_CUDA_RUNTIME_H
#define SIMCUDA_CUDA_RUNTIME_H

#include <cuda_runtime_api.h>

#endif
