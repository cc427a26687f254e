/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of the stand-in for libcudnn: creation and destruction of descriptors. */
#ifndef SIMCUDA_LIB_CUDNN_H
#define SIMCUDA_LIB_CUDNN_H

#include <cudnn.h>

cudnnStatus_t own_cudnn_create(void **ret, size_t size);
cudnnStatus_t own_cudnn_destroy(void *made);

/* Defines the functions that create and destroy descriptors of a kind. */
#define LIFE(kind, type, size)                                  \
	cudnnStatus_t cudnnCreate##kind##Descriptor(type *desc) \
	{                                                       \
		return own_cudnn_create((void **)desc, size);   \
	}                                                       \
	cudnnStatus_t cudnnDestroy##kind##Descriptor(type desc) \
	{                                                       \
		return own_cudnn_destroy(desc);                 \
	}

#endif
