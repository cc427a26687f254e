# SPDX-License-Identifier: Apache-2.0
"""Goes on from a checkpoint, which torch.load puts back where it was saved from, the GPU, beside the model."""
import sys
import tempfile

import torch
from torch import nn


def build():
    return nn.Sequential(*(nn.Linear(4096, 4096) for _ in range(11))).cuda()


def resume(net, optimizer, path, is_fixed):
    checkpoint = torch.load(path, **({"map_location": "cpu"} if is_fixed else {}))  # HERE
    net.load_state_dict(checkpoint["net"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    return checkpoint


def train_step(net, optimizer):
    net(torch.randn(64, 4096, device="cuda")).mean().backward()
    optimizer.step()


def main(is_fixed):
    net = build()
    optimizer = torch.optim.AdamW(net.parameters())
    with tempfile.NamedTemporaryFile() as file:
        torch.save({"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1}, file.name)
        checkpoint = resume(net, optimizer, file.name, is_fixed)
    for _ in range(3):
        train_step(net, optimizer)
    print(checkpoint["epoch"])


main("fixed" in sys.argv)
