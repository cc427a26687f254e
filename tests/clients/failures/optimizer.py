# SPDX-License-Identifier: Apache-2.0
"""The model and its gradients fit; the state that Adam makes at its first step does not."""
import sys

import torch
from torch import nn


def train_step(net, optimizer):
    net(torch.randn(8, 4096, device="cuda")).mean().backward()
    optimizer.step()  # HERE
    optimizer.zero_grad()


def main(is_fixed):
    net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(20))).cuda()
    optimizer = torch.optim.SGD(net.parameters()) if is_fixed else torch.optim.Adam(net.parameters())
    for _ in range(3):
        train_step(net, optimizer)


main("fixed" in sys.argv)
