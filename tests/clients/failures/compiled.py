# SPDX-License-Identifier: Apache-2.0
"""A compiled step with a batch that is too large; what torch.compile writes is in a folder of its own."""
import os
import sys
import tempfile

FOLDER = tempfile.TemporaryDirectory()
os.environ["TORCHINDUCTOR_CACHE_DIR"] = FOLDER.name

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.GELU())))

    def forward(self, x):  # HERE: compiled code knows no other line
        return self.layers(x)


def main(is_fixed):
    net = Net().cuda()
    fast = torch.compile(net, dynamic=False)
    fast(torch.randn(1024 if is_fixed else 400000, 512, device="cuda")).square().mean().backward()


main("fixed" in sys.argv)
