# SPDX-License-Identifier: Apache-2.0
"""The Python module beside PyTorch: python -m gpucache run examples/memory.py, or with --sim 8GiB before it."""
import gpucache
import torch

cache = [torch.zeros(64 << 20, device="cuda")]


def drop(wanted, device):
    """Asked before PyTorch is told that there is no memory."""
    print(f"{wanted} bytes are wanted of device {device}")
    freed = bool(cache)
    cache.clear()
    torch.cuda.empty_cache()
    return freed


gpucache.on_out_of_memory(drop)
gpucache.reset_peak_memory_stats()
with gpucache.tag("forward"):
    activations = torch.zeros(32 << 20, device="cuda")
print(gpucache.memory_summary())
print("forward", gpucache.tag_stats("forward"))
print(f"held {gpucache.memory_allocated()} bytes, at most {gpucache.max_memory_allocated()}")
print(gpucache.report("--color=never").splitlines()[0])
