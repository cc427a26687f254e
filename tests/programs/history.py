# SPDX-License-Identifier: Apache-2.0
"""A leak: keeps each step's output, and with it all tensors that its backward pass would need."""
import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1024, 1024)

    def forward(self, x):
        return self.layer(x).relu()


def train_step(net, history):
    x = torch.randn(4096, 1024, device="cuda")
    history.append(net(x))


def main():
    net, history = Net().cuda(), []
    for _ in range(10000):
        train_step(net, history)


if __name__ == "__main__":
    main()
