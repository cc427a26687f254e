# SPDX-License-Identifier: Apache-2.0
"""What torchrun starts twice: DistributedDataParallel, a GPU each; rank 1 has the larger batch.

train_ranks.py BACKEND [exhausted] FOLDER: each rank leaves in FOLDER/rank<N>.json what collectives gave it and what
PyTorch counted of its GPU.  "exhausted": rank 1 takes memory until there is no more.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def collectives(rank):
    """Numbers that were made on the host, which no kernel decides."""
    mine = torch.arange(4) + 10 * rank
    total, gathered = mine.cuda(), [torch.zeros(4, dtype=torch.int64, device="cuda") for _ in range(2)]
    dist.all_reduce(total)
    dist.all_gather(gathered, mine.cuda())
    return [total.tolist(), [part.tolist() for part in gathered]]


def train(rank):
    layers = [layer for _ in range(4) for layer in (nn.Linear(512, 512), nn.GELU())]
    model = DistributedDataParallel(nn.Sequential(*layers).cuda(), device_ids=[rank], bucket_cap_mb=1)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.randn(1024 << rank, 512, device="cuda")).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    return model


def fill(held):
    while True:
        held.append(torch.empty(256 << 20, dtype=torch.uint8, device="cuda"))  # HERE


def main(backend, folder, exhausted):
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    dist.init_process_group(backend)
    seen = collectives(rank)
    model = train(rank)
    if exhausted and rank == 1:
        fill([])
    dist.barrier()
    del model
    dist.destroy_process_group()
    stats = torch.cuda.memory_stats()
    with open(os.path.join(folder, f"rank{rank}.json"), "w") as file:
        json.dump({"collectives": seen, "counted": {key: stats[key] for key in sorted(stats) if key.endswith(
            (".current", ".peak", ".allocated", ".freed"))}}, file)


main(sys.argv[1], sys.argv[-1], "exhausted" in sys.argv)
