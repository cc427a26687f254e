# SPDX-License-Identifier: Apache-2.0
"""vLLM serves two requests: serve_vllm.py [SETTING=VALUE ...], of vLLM's own, in JSON.

A Llama of random weights, small, or with MODEL=7b in the environment one of 7 billion parameters; nothing is downloaded.
"""
import json
import os
import sys
import tempfile

from vllm import LLM, SamplingParams

SMALL = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "torch_dtype": "bfloat16", "hidden_size": 512,
         "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4,
         "vocab_size": 1000, "max_position_embeddings": 2048}
LARGE = {**SMALL, "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "num_attention_heads": 32,
         "num_key_value_heads": 8, "vocab_size": 32000}
QUIET = {"load_format": "dummy", "skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 1024}


def main(settings):
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/config.json", "w") as file:
            json.dump(LARGE if os.environ.get("MODEL") == "7b" else SMALL, file)
        llm = LLM(model=folder, **QUIET, **settings)  # HERE
        prompts = [{"prompt_token_ids": [5, 6, 7, 8]}, {"prompt_token_ids": list(range(3, 103))}]
        sampling = SamplingParams(max_tokens=8, ignore_eos=True, detokenize=False)
        for output in llm.generate(prompts, sampling, use_tqdm=False):
            print("served", len(output.prompt_token_ids), len(output.outputs[0].token_ids))


if __name__ == "__main__":
    main({name: json.loads(value) for name, _, value in (word.partition("=") for word in sys.argv[1:])})
