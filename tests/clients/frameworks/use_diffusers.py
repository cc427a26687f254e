# SPDX-License-Identifier: Apache-2.0
"""diffusers: a latent diffusion pipeline of random weights; with enable_model_cpu_offload() only one model is on the GPU."""
import sys

import torch
from diffusers import DDIMScheduler, DiTPipeline, DiTTransformer2DModel, AutoencoderKL


def main(offload):
    torch.manual_seed(0)
    transformer = DiTTransformer2DModel(num_attention_heads=16, attention_head_dim=72, in_channels=4, out_channels=8, num_layers=28,
                                        sample_size=32, num_embeds_ada_norm=1000)
    vae = AutoencoderKL(block_out_channels=(128, 256, 512, 512), down_block_types=("DownEncoderBlock2D",) * 4,
                        up_block_types=("UpDecoderBlock2D",) * 4, latent_channels=4, layers_per_block=2)
    pipe = DiTPipeline(transformer, vae, DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)
    if offload:
        pipe.enable_model_cpu_offload()
    else:
        pipe.to("cuda")  # HERE
    made = pipe(class_labels=[1, 2], num_inference_steps=2, output_type="np")
    print(made.images.shape, torch.cuda.max_memory_allocated())


main("offload" in sys.argv)
