# SPDX-License-Identifier: Apache-2.0
"""Small models of many kinds, trained for a few steps on invented data: small.py MODEL BATCH [STEPS].

mlp      wide layers, Adam                                 attention  scores of 1,024 words as tensors of their own
convnet  128 x 128 pixels, and up again (a U-Net)          lstm       cuDNN's recurrent layer, 256 words
words    a vocabulary of 128 thousand words, a short text  frozen     only the last layer learns
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width=512, heads=8):
        super().__init__()
        self.heads, self.project, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.project(x).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return x + self.out(((q @ k.transpose(-1, -2)).softmax(-1) @ v).transpose(1, 2).flatten(2))


class UNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.first, self.down = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 2 * width, 3, 2, 1)
        self.deep, self.up = nn.Conv2d(2 * width, 2 * width, 3, padding=1), nn.ConvTranspose2d(2 * width, width, 2, 2)
        self.last = nn.Conv2d(2 * width, 3, 1)

    def forward(self, x):
        wide = F.relu(self.first(x))
        return self.last(torch.cat((wide, self.up(F.relu(self.deep(F.relu(self.down(wide)))))), 1))


class Reader(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.lstm = nn.LSTM(width, width, 2, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def make(name, batch):
    """The model, and a function that makes a batch."""
    if name == "mlp":
        return nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(4096, 4096), nn.GELU()))), lambda: torch.randn(
            64 * batch, 4096, device="cuda")
    if name == "attention":
        return nn.Sequential(*(Attention() for _ in range(6))), lambda: torch.randn(batch, 1024, 512, device="cuda")
    if name == "convnet":
        return UNet(), lambda: torch.randn(batch, 3, 128, 128, device="cuda")
    if name == "lstm":
        return Reader(), lambda: torch.randn(batch, 256, 512, device="cuda")
    if name == "words":
        return nn.Sequential(nn.Embedding(128000, 512), nn.Linear(512, 128000, bias=False)), lambda: torch.randint(
            128000, (batch, 128), device="cuda")
    net = nn.Sequential(*(layer for _ in range(12) for layer in (nn.Linear(2048, 2048), nn.ReLU())), nn.Linear(2048, 10))
    net[:-1].requires_grad_(False)
    return net, lambda: torch.randn(256 * batch, 2048, device="cuda")


def main(name, batch, steps=3):
    net, batch_of = make(name, int(batch))
    net = net.cuda()
    optimizer = torch.optim.Adam(parameter for parameter in net.parameters() if parameter.requires_grad)
    for _ in range(int(steps)):
        net(batch_of()).float().square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


main(*sys.argv[1:])
