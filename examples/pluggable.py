# SPDX-License-Identifier: Apache-2.0
"""gpucache in the place of PyTorch's cache, told of streams: gpucache-run python examples/pluggable.py."""
import torch

allocator = torch.cuda.memory.CUDAPluggableAllocator("libgpucache.so.0", "gpucache_torch_malloc", "gpucache_torch_free")
torch.cuda.memory.change_current_allocator(allocator)

for step in range(10):
    x = torch.randn(4096, 1024, device="cuda")
    y = x @ x.T
    del x, y
print("ten steps by gpucache")
