# SPDX-License-Identifier: Apache-2.0
"""generate() of transformers, a small Llama of random weights: use_generate.py BATCH LENGTH [offloaded] [chunks]."""
import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM

TOKENS = 16


def main(batch, length, ways):
    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=8, num_attention_heads=8,
                         num_key_value_heads=8, vocab_size=1000, max_position_embeddings=length + TOKENS)
    model = LlamaForCausalLM(config).to("cuda", torch.bfloat16)
    prompt = torch.randint(3, 1000, (batch, length)).cuda()
    settings = {"cache_implementation": "offloaded"} if "offloaded" in ways else {}
    settings.update({"prefill_chunk_size": 1024} if "chunks" in ways else {})
    settings.update({"attention_mask": torch.ones_like(prompt), "max_new_tokens": TOKENS, "do_sample": False, "pad_token_id": 0})
    out = model.generate(prompt, **settings)  # HERE
    print(tuple(out.shape), torch.cuda.max_memory_allocated())


main(*map(int, sys.argv[1:3]), sys.argv[3:])
