# SPDX-License-Identifier: Apache-2.0
"""What else torchrun starts, four times: FSDP2 over tensor parallelism on a mesh of 2 x 2, a pipeline of four stages (1F1B),
messages, and a distributed checkpoint.  One process alone trains by DataParallel on all GPUs instead.

parallel_ranks.py FOLDER: each rank leaves in FOLDER/rank<N>.json what it received and what PyTorch counted of its GPU.
"""
import json
import os
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def step(model, optimizer, batch):
    model(batch).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()


def data_parallel(folder):
    model = nn.DataParallel(nn.Sequential(nn.Linear(512, 512), nn.GELU(), nn.Linear(512, 64)).cuda())
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        step(model, optimizer, torch.randn(256, 512, device="cuda"))
    leave(folder, [], range(torch.cuda.device_count()))


def messages(rank, size):
    """Numbers made on the host, around a ring and in one batch."""
    mine, got = torch.arange(4, device="cpu").add(10 * rank).cuda(), torch.zeros(4, dtype=torch.int64, device="cuda")
    work = [dist.P2POp(dist.isend, mine, (rank + 1) % size), dist.P2POp(dist.irecv, got, (rank - 1) % size)]
    for request in dist.batch_isend_irecv(work):
        request.wait()
    parts = [torch.zeros(1, dtype=torch.int64, device="cuda") for _ in range(size)]
    dist.all_to_all(parts, list(mine.clone().split(1)))
    return [got.tolist(), [part.item() for part in parts]]


def on_a_mesh(folder):
    mesh = init_device_mesh("cuda", (2, 2), mesh_dim_names=("data", "tensor"))
    model = nn.Sequential(nn.Linear(512, 1024), nn.GELU(), nn.Linear(1024, 512)).cuda()
    parallelize_module(model, mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        step(model, optimizer, torch.randn(64, 512, device="cuda"))
    state = {"model": model.state_dict()}
    checkpoint.save(state, checkpoint_id=os.path.join(folder, "checkpoint"))
    checkpoint.load(state, checkpoint_id=os.path.join(folder, "checkpoint"))


def in_a_pipeline(rank, size):
    device = torch.device("cuda", rank)
    like = torch.empty(8, 256, device=device, requires_grad=True)  # said, or the stages would send it as an object: main()
    stage = PipelineStage(nn.Linear(256, 256).cuda(), rank, size, device, input_args=like, output_args=like)
    schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=lambda found, wanted: (found - wanted).square().mean())
    for _ in range(2):
        if rank == 0:
            schedule.step(torch.randn(64, 256, device=device))
        elif rank == size - 1:
            schedule.step(target=torch.randn(64, 256, device=device), losses=[])
        else:
            schedule.step()


def leave(folder, received, gpus):
    torch.cuda.synchronize()
    counted = {}
    for gpu in gpus:
        stats = torch.cuda.memory_stats(gpu)
        counted.update({f"{gpu} {key}": stats[key] for key in sorted(stats)
                        if key.endswith((".current", ".peak", ".allocated", ".freed"))})
    with open(os.path.join(folder, f"rank{os.environ.get('RANK', '0')}.json"), "w") as file:
        json.dump({"received": received, "counted": counted}, file)


def main(folder):
    if "RANK" not in os.environ:
        data_parallel(folder)
        return
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.cuda.set_device(rank)
    # Objects go by gloo: NCCL finds the size of the largest one by a kernel, and kernels compute nothing here.
    dist.init_process_group("cpu:gloo,cuda:nccl")
    received = messages(rank, size)
    on_a_mesh(folder)
    in_a_pipeline(rank, size)
    dist.barrier()
    leave(folder, received, [rank])
    dist.destroy_process_group()


main(sys.argv[1])
