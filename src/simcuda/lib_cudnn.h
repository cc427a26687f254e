/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the stand-in for libcudnn share: the life of a descriptor. */
#ifndef SIMCUDA_LIB_CUDNN_H
#define SIMCUDA_LIB_CUDNN_H

#include <cudnn.h>

cudnnStatus_t own_cudnn_create(void **ret, size_t size);
cudnnStatus_t own_cudnn_destroy(void *made);

#endif
