# SPDX-License-Identifier: Apache-2.0
"""A pool of its own for what is computed once: after that it is empty, and keeps its memory from the training."""
import sys

import torch
from torch import nn


def prepare(pool):
    with torch.cuda.use_mem_pool(pool):
        parts = [torch.randn(24 << 20, device="cuda") for _ in range(20)]  # HERE
        return torch.stack([part.mean() for part in parts])


def train(net, scale):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for _ in range(3):
        (net(torch.randn(64, 4096, device="cuda")).mean() * scale.mean()).backward()
        optimizer.step()
        optimizer.zero_grad()


def main(is_fixed):
    pool = torch.cuda.MemPool()
    scale = prepare(pool).clone()
    if is_fixed:
        del pool
        torch.cuda.empty_cache()
    train(nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(14))).cuda(), scale)


main("fixed" in sys.argv)
