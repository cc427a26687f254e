# SPDX-License-Identifier: Apache-2.0
"""A small PyTorch training run, deterministic, that prints one JSON object.

  torch_train.py [STEPS [gpt2] | oom]

With `gpt2` the model has the size of GPT-2 small, in bfloat16; with `oom` it allocates until that fails, and reports
the exception.  The time of a step is the median of ten equal stretches of steps, so that a busy machine affects it
little. Knows nothing of gpucache.  Prints the losses bit for bit: runs that compute the same print the same.
"""
import json
import os
import statistics
import sys
import time

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")

try:
    import torch
    from torch import nn
except ImportError:
    print(json.dumps({"skip": "PyTorch is not installed"}))
    sys.exit(0)

RUN_OUT = sys.argv[1:] == ["oom"]
GPT2 = sys.argv[2:] == ["gpt2"]
STEPS = int(sys.argv[1]) if len(sys.argv) > 1 and not RUN_OUT else 300
WARM_UP = 10
STRETCHES = 10
WIDTH, HEADS, BLOCKS, TOKENS, BATCH = (768, 12, 12, 1024, 8) if GPT2 else (512, 8, 6, 128, 32)
VARIED = 1 if GPT2 else 5


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm_1 = nn.LayerNorm(WIDTH)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.norm_2 = nn.LayerNorm(WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        y = self.norm_1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(self.norm_2(x))


def train():
    torch.manual_seed(1)
    torch.use_deterministic_algorithms(True, warn_only=True)
    device = torch.device("cuda")
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)], nn.Linear(WIDTH, WIDTH)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    data = torch.randn(4, BATCH, TOKENS, WIDTH, device=device)
    losses = []
    times = []
    stretch = max(1, (STEPS - WARM_UP) // STRETCHES)
    for step in range(STEPS):
        if step >= WARM_UP and (step - WARM_UP) % stretch == 0:
            torch.cuda.synchronize()
            times.append(time.perf_counter())
        # Batches of changing size, as real data has them: allocation sizes change too.
        batch = data[step % 4, : BATCH - step % VARIED]
        with torch.autocast("cuda", torch.bfloat16, enabled=GPT2):
            loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    torch.cuda.synchronize()
    times.append(time.perf_counter())
    stretches = [end - begin for begin, end in zip(times, times[1:])] or [0]
    return [loss.item().hex() for loss in losses], statistics.median(stretches) / stretch


def run_out():
    kept = []
    try:
        while len(kept) < 1 << 14:
            kept.append(torch.zeros(64 << 20, dtype=torch.uint8, device="cuda"))
    except torch.cuda.OutOfMemoryError as error:
        return {"exception": type(error).__name__, "text": str(error)[:200], "blocks": len(kept)}
    return {"exception": None, "blocks": len(kept)}


def main():
    if not torch.cuda.is_available():
        print(json.dumps({"skip": "PyTorch sees no GPU"}))
        return
    if RUN_OUT:
        print(json.dumps({"version": torch.__version__, **run_out()}))
        return
    losses, seconds = train()
    free, total = torch.cuda.mem_get_info()
    print(json.dumps({
        "version": torch.__version__,
        "losses": losses,
        "ms_per_step": round(seconds * 1000, 3),
        "peak_allocated_bytes": torch.cuda.max_memory_allocated(),
        "peak_reserved_bytes": torch.cuda.max_memory_reserved(),
        "device_used_bytes": total - free,
    }))


if __name__ == "__main__":
    main()
