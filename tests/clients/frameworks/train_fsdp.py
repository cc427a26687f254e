# SPDX-License-Identifier: Apache-2.0
"""FSDP2 in bfloat16 on two ranks: train_fsdp.py BATCH LAYERS [offload] [checkpoint]."""
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, OffloadPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

WIDTH = 1024


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(WIDTH)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))  # ACTIVATIONS


class Net(nn.Module):
    def __init__(self, layers, has_checkpoints):
        super().__init__()
        self.blocks, self.has_checkpoints = nn.ModuleList(Block() for _ in range(layers)), has_checkpoints

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.has_checkpoints else block(x)
        return x


def main(batch, layers, ways):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group("cpu:gloo,cuda:nccl")
    net = Net(layers, "checkpoint" in ways)
    policies = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16),
                "offload_policy": CPUOffloadPolicy() if "offload" in ways else OffloadPolicy()}
    for block in net.blocks:
        fully_shard(block, **policies)
    fully_shard(net, **policies)
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(3):
        net(torch.randn(batch, 512, WIDTH, device="cuda")).square().mean().backward()
        optimizer.step()  # STATES
        optimizer.zero_grad()
    with open(os.path.join(os.environ["LEFT"], f"rank{rank}"), "w") as file:
        print(torch.cuda.max_memory_allocated(), file=file)
    dist.destroy_process_group()


main(*map(int, sys.argv[1:3]), sys.argv[3:])
