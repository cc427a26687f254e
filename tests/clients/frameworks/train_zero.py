# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed on two ranks: train_zero.py BATCH WIDTH LAYERS STAGE [offload] [checkpoint] [bucket].

With offload the optimizer is PyTorch's, on the CPU: DeepSpeed's own is compiled when it is first used."""
import os
import sys

import deepspeed
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

CPU = {"device": "cpu"}


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))  # ACTIVATIONS


class Net(nn.Module):
    def __init__(self, width, layers, has_checkpoints):
        super().__init__()
        self.blocks, self.has_checkpoints = nn.ModuleList(Block(width) for _ in range(layers)), has_checkpoints

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.has_checkpoints else block(x)
        return x


def main(batch, width, layers, stage, ways):
    zero = {"stage": stage}
    if "offload" in ways:
        zero.update({"offload_optimizer": CPU, **({"offload_param": CPU} if stage == 3 else {})})
    if "bucket" in ways:
        zero["reduce_bucket_size"] = 10000000
    settings = {"train_micro_batch_size_per_gpu": batch, "bf16": {"enabled": True}, "zero_optimization": zero,
                "zero_force_ds_cpu_optimizer": False}
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    deepspeed.init_distributed("nccl")
    net = Net(width, layers, "checkpoint" in ways)
    engine, *_ = deepspeed.initialize(model=net, config=settings, optimizer=torch.optim.Adam(net.parameters()))  # STATES
    for _ in range(3):
        loss = engine(torch.randn(batch, 512, width, device="cuda", dtype=torch.bfloat16)).square().mean()
        engine.backward(loss)
        engine.step()
    with open(os.path.join(os.environ["LEFT"], f"rank{rank}"), "w") as file:
        print(engine.global_steps, torch.cuda.max_memory_allocated(), file=file)


main(*map(int, sys.argv[1:5]), sys.argv[5:])
