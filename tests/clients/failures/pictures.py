# SPDX-License-Identifier: Apache-2.0
"""Training takes crops, validation whole pictures, and keeps what only a backward pass would need: its first pass fails."""
import sys

import torch
from torch import nn


def train(net, optimizer):
    for _ in range(6):
        net(torch.randn(2, 3, 256, 256, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


def validate(net, is_fixed):
    net.eval()
    for _ in range(4):
        picture = torch.randn(2, 3, 1024, 1024, device="cuda")
        with torch.set_grad_enabled(not is_fixed):
            output = net(picture)  # HERE
        output.argmax(1)


def main(is_fixed):
    layers = [nn.Sequential(nn.Conv2d(32 if i else 3, 32, 3, padding=1), nn.ReLU()) for i in range(12)]
    net = nn.Sequential(*layers, nn.Conv2d(32, 19, 1)).cuda()
    train(net, torch.optim.SGD(net.parameters(), lr=0.01))
    validate(net, is_fixed)


main("fixed" in sys.argv)
