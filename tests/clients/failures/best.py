# SPDX-License-Identifier: Apache-2.0
"""Keeps the weights of each epoch that was better than the one before, on the GPU."""
import copy
import sys

import torch
from torch import nn


def train(net, is_fixed):
    optimizer, best = torch.optim.SGD(net.parameters(), lr=0.1), []
    for _ in range(60):
        net(torch.randn(64, 2048, device="cuda")).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        state = net.state_dict()
        best.append({name: value.cpu() for name, value in state.items()} if is_fixed
                    else copy.deepcopy(state))  # HERE
        if is_fixed:
            best = best[-1:]


train(nn.Sequential(*(nn.Linear(2048, 2048) for _ in range(8))).cuda(), "fixed" in sys.argv)
