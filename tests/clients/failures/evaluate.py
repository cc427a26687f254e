# SPDX-License-Identifier: Apache-2.0
"""Trains, and then evaluates without torch.no_grad(), keeping the outputs."""
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.GELU())))
        self.head = nn.Linear(1024, 10)

    def forward(self, x):
        return self.head(self.layers(x))


def train(net):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(20):
        net(torch.randn(2048, 1024, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate(net):
    net.eval()
    outputs = []
    for _ in range(200):
        outputs.append(net(torch.randn(2048, 1024, device="cuda")))  # HERE
    return torch.cat(outputs)


def main(is_fixed):
    net = Net().cuda()
    train(net)
    with torch.set_grad_enabled(not is_fixed):
        evaluate(net)


main("fixed" in sys.argv)
