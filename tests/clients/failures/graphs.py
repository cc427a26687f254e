# SPDX-License-Identifier: Apache-2.0
"""A CUDA graph for each batch size, each with a memory pool of its own, that keeps what lies between as well."""
import sys

import torch
from torch import nn


def capture(net, batch, pool):
    inputs = torch.zeros(batch, 4096, device="cuda")
    net(inputs)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        outputs = net(inputs)  # HERE
    return graph, inputs, outputs


@torch.no_grad()
def main(is_fixed):
    net = nn.Sequential(nn.Linear(4096, 16384), nn.ReLU(), nn.Linear(16384, 4096)).cuda()
    pool, out = None, torch.empty(2048, 4096, device="cuda")
    graphs = {}
    for batch in range(2048, 0, -64):
        graph, inputs, outputs = capture(net, batch, pool)
        if is_fixed:
            pool, outputs = graph.pool(), out[:batch]
        graphs[batch] = graph, inputs, outputs
    print(len(graphs))


main("fixed" in sys.argv)
