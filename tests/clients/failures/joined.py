# SPDX-License-Identifier: Apache-2.0
"""What each batch gave stays on the GPU, and is joined at the end: then all of it is there twice."""
import sys

import torch
from torch import nn


@torch.no_grad()
def predict(net, n, is_fixed):
    parts = []
    for _ in range(n):
        part = torch.sigmoid(net(torch.randn(1024, 512, device="cuda")))
        parts.append(part.cpu() if is_fixed else part)
    return torch.cat(parts)  # HERE


print(predict(nn.Linear(512, 8192).cuda(), 80, "fixed" in sys.argv).shape)
