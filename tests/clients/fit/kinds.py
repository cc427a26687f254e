# SPDX-License-Identifier: Apache-2.0
"""Programs of many kinds, each for a few steps on invented data: kinds.py PROGRAM --batch N.

accumulate  a ViT, autocast and GradScaler, gradients of two batches    checkpoint  a GPT whose blocks are computed twice
diffusion   a U-Net, pictures of many sizes, an average of weights       generate    a KV cache that grows, no gradients
"""
import argparse
import copy
import random

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, heads=8, is_causal=False):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past=None):
        q, k, v = self.project(self.norm1(x)).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if past is not None:
            past[:] = k, v = [torch.cat((old, new), 2) for old, new in zip(past, (k, v))] if past else (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.is_causal and past is None)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norm2(x))


def accumulate(batch):
    net = nn.Sequential(nn.Conv2d(3, 384, 16, 16), nn.Flatten(2))
    blocks, head = nn.Sequential(*(Block(384, 6) for _ in range(8))), nn.Linear(384, 1000)
    parameters = [*net.parameters(), *blocks.parameters(), *head.parameters()]
    optimizer, scaler = torch.optim.AdamW(parameters), torch.amp.GradScaler("cuda")
    for step in range(4):
        with torch.autocast("cuda", torch.float16):
            words = net(torch.randn(batch, 3, 224, 224)).transpose(1, 2)
            loss = F.cross_entropy(head(blocks(words).mean(1)), torch.zeros(batch, dtype=torch.long))
        scaler.scale(loss / 2).backward()
        if step % 2:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()


def checkpointed(batch):
    words, layers, head = nn.Embedding(16000, 768), [Block(768, 12, True) for _ in range(10)], nn.Linear(768, 16000)
    net = nn.ModuleList([words, *layers, head])
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(3):
        text = torch.randint(16000, (batch, 512))
        x = words(text)
        for layer in layers:
            x = checkpoint(layer, x, use_reentrant=False)
        F.cross_entropy(head(x).flatten(0, 1), text.flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


def diffusion(batch):
    def part(inputs, outputs):
        return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1), nn.GroupNorm(8, outputs), nn.SiLU())

    net = nn.ModuleList([part(3, 64), part(64, 128), part(128, 128), part(192, 64), nn.Conv2d(64, 3, 1)])
    average, numbers = copy.deepcopy(net), random.Random(1)
    optimizer = torch.optim.AdamW(net.parameters())
    for _ in range(6):
        side = 16 * numbers.randrange(4, 13)
        x = torch.randn(batch, 3, side, side)
        wide = net[0](x)
        deep = net[2](net[1](F.avg_pool2d(wide, 2)))
        y = net[4](net[3](torch.cat((wide, F.interpolate(deep, scale_factor=2)), 1)))
        F.mse_loss(y, torch.randn_like(x)).backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for old, new in zip(average.parameters(), net.parameters()):
                old.lerp_(new, 0.01)


@torch.inference_mode()
def generate(batch):
    layers = nn.ModuleList([Block(1024, 16, True) for _ in range(12)]).half()
    words, head = nn.Embedding(32000, 1024).half(), nn.Linear(1024, 32000).half()
    pasts = [[] for _ in layers]
    text = torch.randint(32000, (batch, 64))
    for _ in range(12):
        x = words(text)
        for layer, past in zip(layers, pasts):
            x = layer(x, past)
        text = head(x[:, -1:]).argmax(-1)


PROGRAMS = {f.__name__: f for f in (accumulate, diffusion, generate)}
PROGRAMS["checkpoint"] = checkpointed

if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("--batch", type=int, required=True)
    given = parser.parse_args()
    torch.set_default_device("cuda")
    PROGRAMS[given.program](given.batch)
