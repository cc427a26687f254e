# SPDX-License-Identifier: Apache-2.0
"""train_beside.py GPT_PY STEPS: trains that GPT on the GPU, and after each of its steps a small model on the host, whose losses
and weights are printed bit for bit."""
import runpy
import sys

import torch
from torch import nn
from torch.optim.optimizer import register_optimizer_step_post_hook

torch.manual_seed(1)
host = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64))
optimizer = torch.optim.SGD(host.parameters(), lr=1e-2)


def step_on_host(stepped, _args, _kwargs):
    if stepped is optimizer:
        return
    x = torch.randn(128, 64)
    loss = (host(x) - x.roll(1, 1)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("loss on the host", loss.item().hex(), flush=True)


register_optimizer_step_post_hook(step_on_host)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0])
print("weights on the host", sum(p.double().sum() for p in host.parameters()).item().hex())
