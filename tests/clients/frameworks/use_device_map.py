# SPDX-License-Identifier: Apache-2.0
"""from_pretrained() of transformers, whose threads load a Llama of random weights: use_device_map.py LAYERS [auto]."""
import sys
import tempfile

import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


def main(layers, ways):
    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=layers, num_attention_heads=8,
                         num_key_value_heads=8, vocab_size=1000)
    with tempfile.TemporaryDirectory() as folder:
        with torch.device("meta"):
            model = LlamaForCausalLM(config).to(torch.bfloat16)
        model.to_empty(device="cpu").save_pretrained(folder)
        del model
        settings = {"device_map": "auto"} if "auto" in ways else {"device_map": "cuda"}
        model = AutoModelForCausalLM.from_pretrained(folder, **settings)  # HERE
    with torch.no_grad():
        logits = model(torch.zeros(1, 128, dtype=torch.long, device="cuda")).logits
    print(tuple(logits.shape), torch.cuda.max_memory_allocated())


main(int(sys.argv[1]), sys.argv[2:])
