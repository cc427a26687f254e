# SPDX-License-Identifier: Apache-2.0
"""Adds up the loss of each step, and with it keeps what the backward pass of each step would need."""
import sys

import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4)))

    def forward(self, x):
        return self.layers(x).relu()


def train_step(net, x):
    return net(x).square().mean()


def main(is_fixed):
    net = Net().cuda()
    total = 0
    for _ in range(200):
        loss = train_step(net, torch.randn(4096, 1024, device="cuda"))  # HERE
        total += loss.detach() if is_fixed else loss


main("fixed" in sys.argv)
