# SPDX-License-Identifier: Apache-2.0
"""diffusers: an image of a transformer and a decoder of random weights: use_diffusers.py LAYERS [offload]."""
import sys

import torch
from diffusers import AutoencoderKL, DDIMScheduler, DiTPipeline, DiTTransformer2DModel


def main(layers, ways):
    transformer = DiTTransformer2DModel(num_attention_heads=16, attention_head_dim=64, in_channels=4, out_channels=8,
                                        num_layers=layers, sample_size=64, num_embeds_ada_norm=1000)
    decoder = AutoencoderKL(down_block_types=["DownEncoderBlock2D"] * 4, up_block_types=["UpDecoderBlock2D"] * 4,
                            block_out_channels=[128, 256, 512, 512], latent_channels=4, sample_size=512)
    pipe = DiTPipeline(transformer, decoder, DDIMScheduler())
    pipe.set_progress_bar_config(disable=True)
    if "offload" in ways:
        pipe.enable_model_cpu_offload()
    else:
        pipe.to("cuda")
    made = pipe([1], num_inference_steps=2, output_type="np")  # HERE
    print(made.images.shape, torch.cuda.max_memory_allocated())


main(int(sys.argv[1]), sys.argv[2:])
