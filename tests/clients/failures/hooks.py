# SPDX-License-Identifier: Apache-2.0
"""A forward hook that keeps what a layer gave, to look at it later, and is never removed."""
import sys

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.first, self.second, self.head = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 10)

    def forward(self, x):
        x = self.first(x).relu()
        x = self.second(x)  # HERE
        return self.head(x.relu())


def train(net, is_fixed):
    optimizer, seen = torch.optim.SGD(net.parameters(), lr=0.1), []
    net.second.register_forward_hook(
        lambda _module, _inputs, out: seen.append(out.detach().mean().item() if is_fixed else out))
    for _ in range(400):
        net(torch.randn(4096, 1024, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


train(Net().cuda(), "fixed" in sys.argv)
