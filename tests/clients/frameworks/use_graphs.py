# SPDX-License-Identifier: Apache-2.0
"""PyTorch Geometric: a graph network; with too many nodes it runs out of memory, which the package catches and raises again.

use_graphs.py NODES [batches]: a few nodes at a time."""
import sys

import torch
from torch_geometric.nn import GCNConv


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(64, 512), GCNConv(512, 16)

    def forward(self, x, edges):
        return self.second(self.first(x, edges).relu(), edges)  # HERE


def main(n, n_batch):
    net = Net().cuda()
    optimizer = torch.optim.Adam(net.parameters())
    edges = torch.randint(0, n_batch, (2, 4 * n_batch)).cuda()
    for _ in range(3 * n // n_batch):
        optimizer.zero_grad()
        net(torch.randn(n_batch, 64, device="cuda"), edges).square().mean().backward()
        optimizer.step()
    print(torch.cuda.max_memory_allocated())


main(int(sys.argv[1]), 20000 if "batches" in sys.argv else int(sys.argv[1]))
