# SPDX-License-Identifier: Apache-2.0
"""A GPT of 163 million parameters, trained on invented text: gpt.py [STEPS [BATCH]]."""
import sys

try:
    import torch
except ImportError:
    sys.exit("gpt.py needs PyTorch: pip install torch")
from torch import nn
from torch.nn import functional as F

LAYERS, HEADS, WIDTH, LENGTH, VOCABULARY = 12, 12, 768, 1024, 50304


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.attention, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        heads = self.attention(self.before(x)).unflatten(2, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.project(F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x))


def main(steps=5, batch=8):
    with torch.device("cuda"):
        places = nn.Parameter(torch.zeros(LENGTH, WIDTH))
        words = nn.Embedding(VOCABULARY, WIDTH)
        model = nn.Sequential(*(Block() for _ in range(LAYERS)), nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY))
    parameters = [places, *words.parameters(), *model.parameters()]
    optimizer = torch.optim.AdamW(parameters, lr=3e-4)
    for step in range(steps):
        text = torch.randint(VOCABULARY, (batch, LENGTH + 1), device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            guess = model(words(text[:, :-1]) + places)
            loss = F.cross_entropy(guess.flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad()
        print(f"step {step}: peak {torch.cuda.max_memory_allocated() >> 20} MiB allocated", flush=True)


main(*map(int, sys.argv[1:]))
