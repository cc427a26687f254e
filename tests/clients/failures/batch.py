# SPDX-License-Identifier: Apache-2.0
"""A batch that is too large: what the forward pass keeps for the backward pass does not fit."""
import sys

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.narrow(torch.nn.functional.gelu(self.wide(self.norm(x))))  # HERE


def train_step(net, optimizer, batch):
    loss = net(torch.randn(batch, 512, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()


def main(is_fixed):
    net = nn.Sequential(*(Block() for _ in range(12))).cuda()
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        train_step(net, optimizer, 4 if is_fixed else 32)


main("fixed" in sys.argv)
