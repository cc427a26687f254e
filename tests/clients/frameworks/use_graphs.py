# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric: a graph network; with too many nodes it runs out of memory, which the package catches and raises again."""
import sys

import torch
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(64, 512), GCNConv(512, 16)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)  # HERE


def main(n):
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    edges = torch.randint(0, n, (2, 4 * n)).cuda()
    for _ in range(3):
        optimizer.zero_grad()
        net(torch.randn(n, 64, device="cuda"), edges).square().mean().backward()
        optimizer.step()
    print(torch.cuda.max_memory_allocated())


main(400000 if "fail" in sys.argv else 20000)
