# SPDX-License-Identifier: Apache-2.0
"""TRL's SFTTrainer with LoRA on a small Llama of random weights: train_lora.py BATCH [checkpointing]."""
import sys
import tempfile

import torch
from datasets import Dataset
from peft import LoraConfig
from tokenizers import Tokenizer, models
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

LENGTH = 1024


def main(batch, has_checkpoints):
    torch.manual_seed(0)
    words = Tokenizer(models.WordLevel({"<e>": 0, **{f"w{i}": i for i in range(1, 1000)}}, unk_token="<e>"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, eos_token="<e>", pad_token="<e>")
    model = LlamaForCausalLM(LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=8, num_attention_heads=8,
                                         num_key_value_heads=8, vocab_size=1000, max_position_embeddings=LENGTH))
    texts = Dataset.from_dict({"input_ids": [[i % 1000 for i in range(LENGTH)]] * 64})
    with tempfile.TemporaryDirectory() as folder:
        settings = SFTConfig(output_dir=folder, max_steps=3, per_device_train_batch_size=batch, max_length=LENGTH, bf16=True,
                             gradient_checkpointing=has_checkpoints, report_to=[], save_strategy="no", disable_tqdm=True,
                             logging_nan_inf_filter=False)
        trainer = SFTTrainer(model=model, args=settings, train_dataset=texts, processing_class=tokenizer,
                             peft_config=LoraConfig(r=8, target_modules=["q_proj", "v_proj"]))
        done = trainer.train()  # HERE
    print(done.global_step, torch.cuda.max_memory_allocated())


main(int(sys.argv[1]), "checkpointing" in sys.argv)
