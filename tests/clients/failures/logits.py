# SPDX-License-Identifier: Apache-2.0
"""A large vocabulary: what the head says of each word, once more as float32, for the loss."""
import sys

import torch
from torch import nn
from torch.nn import functional as F

WORDS = 128 * 1024


class Model(nn.Module):
    def __init__(self, width=512):
        super().__init__()
        self.words, self.head = nn.Embedding(WORDS, width), nn.Linear(width, WORDS, bias=False)

    def forward(self, text):
        return self.words(text)


def loss_of(model, hidden, labels):
    return F.cross_entropy(model.head(hidden).float(), labels)  # HERE


def train_step(model, text, n_parts):
    hidden = model(text).flatten(0, 1)
    for part, labels in zip(hidden.chunk(n_parts), text.flatten().chunk(n_parts)):
        loss_of(model, part, labels).backward(retain_graph=True)


def main(is_fixed):
    model = Model().to("cuda", torch.bfloat16)
    for _ in range(3):
        train_step(model, torch.randint(WORDS, (4, 2048), device="cuda"), 16 if is_fixed else 1)


main("fixed" in sys.argv)
