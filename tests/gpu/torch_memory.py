# SPDX-License-Identifier: Apache-2.0
"""Measures the device memory that PyTorch's libraries take besides its cache, one library after the other; prints JSON.

Each figure is in bytes: the decrease of cudaMemGetInfo's free memory since the previous step, less the increase of what
PyTorch reserved.  Knows nothing of gpucache.  On the simulated GPU the program checks the table of
docs/inside/SIMULATED-GPU.md.
"""
import json
import os
import sys
import tempfile

try:
    import torch
except ImportError:
    print(json.dumps({"skip": "PyTorch is not installed"}))
    sys.exit(0)


def outside():
    torch.cuda.synchronize()
    free, total = torch.cuda.mem_get_info()
    return total - free - torch.cuda.memory_reserved()


def product(dtype):
    a = torch.ones(1024, 1024, device="cuda", dtype=dtype)
    return a @ a


def addmm():
    a = torch.ones(1024, 1024, device="cuda", dtype=torch.bfloat16)
    return torch.nn.functional.linear(a, a, a[0])


def convolution():
    x = torch.ones(8, 64, 56, 56, device="cuda", requires_grad=True)
    torch.nn.Conv2d(64, 64, 3, padding=1, device="cuda")(x).sum().backward()


def recurrent():
    return torch.nn.LSTM(64, 128, 2, device="cuda")(torch.ones(20, 8, 64, device="cuda"))


def attention():
    q = torch.ones(4, 8, 256, 64, device="cuda", dtype=torch.bfloat16)
    return torch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)


def collective():
    import torch.distributed as dist

    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        dist.all_reduce(torch.ones(1 << 20, device="cuda"))
        torch.cuda.synchronize()


STEPS = (
    ("the context", lambda: torch.empty(1, device="cuda")),
    ("a kernel of PyTorch's own", lambda: torch.ones(1 << 20, device="cuda") + 1),
    ("cuBLAS, float32", lambda: product(torch.float32)),
    ("cuBLAS, bfloat16", lambda: product(torch.bfloat16)),
    ("cuBLASLt", addmm),
    ("attention", attention),
    ("cuDNN, a convolution and its gradients", convolution),
    ("cuDNN, recurrent", recurrent),
    ("cuFFT", lambda: torch.fft.fft(torch.ones(64, 4096, device="cuda"))),
    ("cuSOLVER", lambda: torch.linalg.qr(torch.ones(256, 256, device="cuda"))),
    ("NCCL, one rank", collective),
)


def main():
    if not torch.cuda.is_available():
        print(json.dumps({"skip": "PyTorch sees no GPU"}))
        return
    answer = {"version": torch.__version__, "device": torch.cuda.get_device_name(),
              "total": torch.cuda.mem_get_info()[1]}
    before = 0
    for name, step in STEPS:
        try:
            step()
            after = outside()
            answer[name] = after - before
            before = after
        except Exception as error:  # each library that the machine lacks has its own
            answer[name] = f"{type(error).__name__}: {str(error)[:120]}"
    answer["PyTorch's cache"] = torch.cuda.memory_reserved()
    print(json.dumps(answer), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main()
