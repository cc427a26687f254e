/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of a program's code that a driver would load on a GPU.
 *
 * A fat binary has an image for each architecture that it was built for: machine code (a cubin) or PTX, which the
 * driver compiles.  For a GPU of capability 8.9:
 *
 *      cubins of 8.0, 8.6, 9.0, PTX of 9.0  -->  the cubin of 8.6: the largest of the same major version, not above it
 *      cubin of 9.0, PTX of 8.0, 7.5        -->  PTX of 8.0: the largest not above it
 *      cubin of 9.0                         -->  none: NO_BINARY_FOR_GPU
 *
 * Code for one architecture alone (sm_90a) fits only that, code for a family (sm_100f) only its major version.
 *
 * Threads     Any: reads the image, has no state.
 * Failure     NO_BINARY_FOR_GPU: no image fits.  INVALID_PTX: the image is one PTX text, which is for newer GPUs.
 * Limits      An image of another kind is not looked at, and fits: its versions are those of the GPU.  Only headers
 *             are read, which do not tell from which PTX a cubin was made: its PTX version is that of the cubin.
 *             The image is trusted, as it is by a driver.
 */
#ifndef GPC_SIM_IMAGE_H
#define GPC_SIM_IMAGE_H

#include "driver/cuda_abi.h"
#include "sim/gpu/model.h"

/* Versions as a kernel's attributes have them: 86 for 8.6. */
struct gpc_sim_image {
	int ptx;    /* what was compiled for */
	int binary; /* what runs: of PTX, the GPU's capability */
};

/*
 * `image`: what __cudaRegisterFatBinary or cuModuleLoadData gets: a fat binary or its wrapper, a cubin, or PTX as text.
 */
CUresult gpc_sim_image_choose(
	const void *image, const struct gpc_sim_model *model, struct gpc_sim_image *ret_image);

#endif
