# SPDX-License-Identifier: Apache-2.0
"""Texts of many lengths, each held for a while: never too much at once, but PyTorch's cache is full of holes."""
import random

import torch


def encode(length):
    return torch.empty(length, 1024, device="cuda")  # HERE


def main():
    numbers = random.Random(1)
    held = [None] * 60
    for _ in range(1500):
        place = numbers.randrange(len(held))
        held[place] = None
        held[place] = encode(numbers.randrange(1024, 16 * 1024))


main()
