# SPDX-License-Identifier: Apache-2.0
"""What fills a GPU of 4 GiB in a loop without being kept too long, and leaks of the same shape: shapes.py NAME [leak].

Each runs out of memory.  Without "leak" everything that is held is needed, and only a larger GPU, or less of it at once,
would do; with it, the same loop keeps what is over.
"""
import collections
import copy
import sys

import torch
from torch import nn
from torch.nn import functional as F

GPU, WIDTH, MIB = "cuda", 1024, 1 << 20


def blank(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device=GPU)


def stack(layers, width=WIDTH):
    return [nn.Linear(width, width).to(GPU) for _ in range(layers)]


def step(net, optimizer, x):
    net(x).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


class Net(nn.Module):
    def __init__(self, layers=4, width=WIDTH):
        super().__init__()
        self.layers = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers)))

    def forward(self, x):
        return self.layers(x).relu()


def modules(is_leak):
    """Layers in a list, called one after the other: one pass of them, or results of many."""
    norms, layers, kept = [nn.LayerNorm(WIDTH).to(GPU) for _ in range(24)], stack(24), []
    for _ in range(60):
        y = torch.randn(1024 if is_leak else 49152, 1, device=GPU).expand(-1, WIDTH)
        for norm, layer in zip(norms, layers):
            y = norm(y)
            y = layer(y)
        if is_leak:
            kept.append(y.mean())


def unrolled(is_leak):
    """A cell called once for each word of a long text; or a state that is carried from text to text."""
    cell, head = nn.GRUCell(1, WIDTH).to(GPU), nn.Linear(WIDTH, WIDTH).to(GPU)
    texts = torch.zeros(64, 8 if is_leak else 256, 1024, 1, device=GPU)
    state = torch.zeros(1024, WIDTH, device=GPU)
    for text in texts:
        for word in text:
            state = cell(word, state)
        F.mse_loss(head(state), torch.zeros(1024, WIDTH, device=GPU)).backward(retain_graph=is_leak)
        state = state if is_leak else state.detach()


def features(is_leak):
    """What each layer says of one picture; or of all pictures."""
    layers, seen = stack(16), []
    with torch.no_grad():
        for i in range(200):
            x = torch.randn(65536 if not is_leak else 2048, WIDTH, device=GPU)
            if not is_leak:
                seen = []
            for layer in layers:
                x = layer(x)
                seen.append(x)


def optimizers(_is_leak):
    """An optimizer for each layer: their states come in a loop, at the first step."""
    layers = stack(16, 4096)
    each = [torch.optim.Adam(layer.parameters()) for layer in layers]
    for layer in layers:
        layer(torch.randn(8, 4096, device=GPU)).mean().backward()
    for optimizer in each:
        optimizer.step()


def averages(is_leak):
    """Averages of the weights over twelve spans of time; or the best weights of each epoch, all of them."""
    net = Net(4, 2048).to(GPU)
    optimizer, kept = torch.optim.SGD(net.parameters(), lr=0.1), []
    if is_leak:
        for _ in range(100):
            step(net, optimizer, torch.randn(64, 2048, device=GPU))
            kept.append(copy.deepcopy(net.state_dict()))
    kept = [copy.deepcopy(net) for _ in range(100)]


def tables(is_leak):
    """Keys and values of each layer, for the longest text that there may be; or of each request, anew."""
    layers, kept = stack(8), []
    if not is_leak:
        kept = [(blank(64), blank(64)) for _ in range(64)]
    with torch.no_grad():
        for _ in range(200):
            x = torch.randn(64, WIDTH, device=GPU)
            for layer in layers:
                x = layer(x)
                kept.append((blank(2), blank(2)))


def replay(is_leak):
    """A buffer of what was played, with a bound, and then a batch that is too large; or a buffer without."""
    net, buffer = Net().to(GPU), collections.deque(maxlen=None if is_leak else 400)
    optimizer = torch.optim.Adam(net.parameters())
    for i in range(2000):
        buffer.append(blank(6))
        step(net, optimizer, torch.randn(64 if is_leak or i < 900 else 200000, WIDTH, device=GPU))


def dataset(is_leak):
    """A data set that is moved to the GPU piece by piece, and then batches, of which one is too large; or kept batches."""
    net, kept = Net().to(GPU), []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(10000 if is_leak else 330):
        kept.append(torch.zeros(8 * MIB, dtype=torch.uint8).to(GPU))
        if is_leak:
            step(net, optimizer, torch.randn(64, WIDTH, device=GPU))
    for size in (*[64] * 40, 200000):
        step(net, optimizer, torch.randn(size, WIDTH, device=GPU))


def batches(is_leak):
    """Gradients of many small batches, added up as they come; or their losses, and one backward pass for all."""
    net = Net(12).to(GPU)
    optimizer, total = torch.optim.SGD(net.parameters(), lr=0.1), 0
    for i in range(40):
        loss = net(torch.randn(4096 if is_leak or i < 30 else 100000, WIDTH, device=GPU)).square().mean()
        if is_leak:
            total = total + loss
        else:
            loss.backward()
    optimizer.step()


if __name__ == "__main__":
    globals()[sys.argv[1]]("leak" in sys.argv[2:])
