# SPDX-License-Identifier: Apache-2.0
"""Another process has most of the GPU."""
import torch
from torch import nn


def main():
    net = nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(20))).cuda()  # HERE
    net(torch.randn(8, 4096, device="cuda"))


main()
