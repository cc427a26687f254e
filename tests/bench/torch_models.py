# SPDX-License-Identifier: Apache-2.0
"""Steps of models of several kinds, for torch_step.py."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        heads = self.attention(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = heads
        if past is not None:
            key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
        x = x + self.project(F.scaled_dot_product_attention(query, key, value, is_causal=past is None).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x)), (key, value)


class Residual(nn.Module):
    """A bottleneck of ResNet-50."""

    def __init__(self, width):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4 * width, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
                                  nn.Conv2d(width, 4 * width, 1, bias=False), nn.BatchNorm2d(4 * width))

    def forward(self, x):
        return F.relu(x + self.body(x))


def train(model, make_loss, optimizer):
    def step():
        optimizer.zero_grad()
        make_loss(model).backward()
        optimizer.step()
    return step


def gpt():
    """163 million parameters, autocast to bfloat16, AdamW."""
    words, last = nn.Embedding(50304, 768), nn.Linear(768, 50304)
    model = nn.ModuleList([words, *(Block(768, 12) for _ in range(12)), last])

    def loss(_):
        text = torch.randint(50304, (8, 1025), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            x = words(text[:, :-1])
            for block in model[1:-1]:
                x, _ = block(x)
            guess = F.cross_entropy(last(x).flatten(0, 1), text[:, 1:].flatten())
        return guess
    return train(model, loss, torch.optim.AdamW(model.parameters()))


def resnet():
    """Sixteen bottlenecks with batch normalization, SGD with momentum."""
    model = nn.Sequential(nn.Conv2d(3, 256, 7, 4, 3), *(Residual(64) for _ in range(16)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(256, 1000))
    return train(model, lambda model: model(torch.zeros(16, 3, 224, 224, device="cuda")).square().mean(),
                 torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


def lstm():
    """Two layers, a cell a step of 100: Python and many small tensors."""
    cells = nn.ModuleList([nn.LSTMCell(512, 512), nn.LSTMCell(512, 512)])

    def loss(_):
        states = [None, None]
        for _ in range(100):
            x = torch.zeros(32, 512, device="cuda")
            for at, cell in enumerate(cells):
                states[at] = cell(x, states[at])
                x = states[at][0]
        return x.mean()
    return train(cells, loss, torch.optim.Adam(cells.parameters()))


def decode():
    """One token more for each of eight texts, with a cache of keys and values, without gradients."""
    blocks = nn.ModuleList([Block(768, 12) for _ in range(12)])
    past = [[torch.zeros(8, 12, 128, 64, device="cuda")] * 2 for _ in blocks]

    @torch.no_grad()
    def step():
        x = torch.zeros(8, 1, 768, device="cuda")
        for block, kept in zip(blocks, past):
            x, _ = block(x, kept)
    return step


MODELS = {"gpt": gpt, "resnet": resnet, "lstm": lstm, "decode": decode}


def step_of(name):
    with torch.device("cuda"):
        return MODELS[name]()
