"""An adapter trained after two tokens were added is loaded on a base model whose vocabulary was not resized."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def make_base():
    size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
    return LlamaForCausalLM(LlamaConfig(vocab_size=32, **size))


def save_adapter(model, folder):
    model.resize_token_embeddings(34)
    lora = LoraConfig(r=4, target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])
    get_peft_model(model, lora).save_pretrained(folder)


torch.manual_seed(0)
base = make_base()
with tempfile.TemporaryDirectory() as folder:
    save_adapter(make_base(), folder)
    base.resize_token_embeddings(34)
    model = PeftModel.from_pretrained(base, folder, is_trainable=True)

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
