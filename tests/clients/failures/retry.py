# SPDX-License-Identifier: Apache-2.0
"""Tries again with half of the batch, within `except`: the exception holds the frames, and they all that they made."""
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(16))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x).relu()  # HERE
        return x


def train_step(net, batch):
    net(torch.randn(batch, 1024, device="cuda")).mean().backward()


def step_or_half(net, batch):
    try:
        train_step(net, batch)
    except torch.cuda.OutOfMemoryError:
        train_step(net, batch // 2)


def step_then_half(net, batch):
    is_done = False
    while not is_done:
        try:
            train_step(net, batch)
            is_done = True
        except torch.cuda.OutOfMemoryError:
            batch //= 2


def main(is_fixed):
    net = Net().cuda()
    for _ in range(3):
        (step_then_half if is_fixed else step_or_half)(net, 65536)


main("fixed" in sys.argv)
