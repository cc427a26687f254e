# SPDX-License-Identifier: Apache-2.0
"""Carries the hidden state from text to text, and with it the graph of all texts before (retain_graph=True)."""
import sys

import torch
from torch import nn


class Reader(nn.Module):
    def __init__(self, width=1024):
        super().__init__()
        self.cell, self.head = nn.GRUCell(width, width), nn.Linear(width, 10)

    def forward(self, text, state):
        for word in text:
            state = self.cell(word, state)  # HERE
        return self.head(state), state


def train(net, is_fixed):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    state = torch.zeros(512, 1024, device="cuda")
    for _ in range(60):
        out, state = net(torch.randn(16, 512, 1024, device="cuda"), state)
        out.square().mean().backward(retain_graph=not is_fixed)
        if is_fixed:
            state = state.detach()
    optimizer.step()


train(Reader().cuda(), "fixed" in sys.argv)
