# SPDX-License-Identifier: Apache-2.0
"""Models whose memory people ask about, trained for a few steps on invented data: models.py MODEL BATCH [STEPS].

gpt2    GPT-2 small: 124 million parameters, 1,024 tokens, AdamW, bfloat16 by autocast
resnet  ResNet-50: 224 x 224 pixels, SGD with momentum, float16 by autocast
llama   a Llama of 1.1 billion parameters: 512 tokens, bfloat16, AdamW
lora    the same, frozen, with adapters of rank 8 on the queries and values
"""
import sys

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    """A layer of GPT-2."""

    def __init__(self, width=768, heads=12):
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        heads = self.attention(self.before(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.project(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


class GPT2(nn.Module):
    length, words = 1024, 50257

    def __init__(self, width=768, layers=12):
        super().__init__()
        self.embed, self.places = nn.Embedding(self.words, width), nn.Embedding(self.length, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, text):
        x = self.embed(text) + self.places.weight[:text.shape[1]]
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embed.weight)


class Bottleneck(nn.Module):
    def __init__(self, inputs, width, stride):
        super().__init__()
        outputs = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(inputs, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True),
            nn.Conv2d(width, outputs, 1, bias=False), nn.BatchNorm2d(outputs))
        self.past = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)) \
            if stride > 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.path(x) + self.past(x), inplace=True)


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for width, n in (64, 3), (128, 4), (256, 6), (512, 3):
        for i in range(n):
            layers.append(Bottleneck(inputs, width, 2 if i == 0 and width > 64 else 1))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5))


class LowRank(nn.Module):
    """A frozen layer, and what is learned beside it."""

    def __init__(self, linear, rank=8):
        super().__init__()
        self.linear = linear
        self.down = nn.Linear(linear.in_features, rank, bias=False)
        self.up = nn.Linear(rank, linear.out_features, bias=False)

    def forward(self, x):
        return self.linear(x) + self.up(self.down(x))


class Layer(nn.Module):
    """A layer of Llama."""
    heads, shared = 32, 4

    def __init__(self, width, inner):
        super().__init__()
        size = width // self.heads
        self.before, self.between = Norm(width), Norm(width)
        self.query, self.output = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
        self.key, self.value = (nn.Linear(width, self.shared * size, bias=False) for _ in range(2))
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        y = self.before(x)
        query = self.query(y).unflatten(2, (self.heads, -1)).transpose(1, 2)
        key, value = (part(y).unflatten(2, (self.shared, -1)).transpose(1, 2)
                      .repeat_interleave(self.heads // self.shared, 1) for part in (self.key, self.value))
        x = x + self.output(F.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2))
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    length, words = 512, 32000

    def __init__(self, width=2048, inner=5632, layers=22):
        super().__init__()
        self.embed = nn.Embedding(self.words, width)
        self.layers = nn.ModuleList(Layer(width, inner) for _ in range(layers))
        self.norm, self.head = Norm(width), nn.Linear(width, self.words, bias=False)

    def forward(self, text):
        x = self.embed(text)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def make(name):
    """The model on the GPU, its optimizer, and the type that autocast computes in; None: no autocast."""
    with torch.device("cuda"):
        if name == "gpt2":
            model = GPT2()
            return model, torch.optim.AdamW(model.parameters(), lr=3e-4), torch.bfloat16
        if name == "resnet":
            model = resnet50()
            return model, torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), torch.float16
        torch.set_default_dtype(torch.bfloat16)
        model = Llama()
        if name == "lora":
            model.requires_grad_(False)
            for layer in model.layers:
                layer.query, layer.value = LowRank(layer.query), LowRank(layer.value)
        learned = [parameter for parameter in model.parameters() if parameter.requires_grad]
        return model, torch.optim.AdamW(learned, lr=1e-4), None


def main(name, batch, steps=3):
    model, optimizer, kind = make(name)
    for _ in range(int(steps)):
        if name == "resnet":
            data = torch.randn(int(batch), 3, 224, 224, device="cuda")
            wanted = torch.randint(1000, (int(batch),), device="cuda")
        else:
            text = torch.randint(model.words, (int(batch), model.length + 1), device="cuda")
            data, wanted = text[:, :-1], text[:, 1:].flatten()
        with torch.autocast("cuda", kind, enabled=kind is not None):
            guess = model(data)
            loss = F.cross_entropy(guess.flatten(0, -2), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


main(*sys.argv[1:])
