"""An adapter of a model of width 16 is loaded on a model of width 32."""

import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM


def make(width):
    layers = dict(num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    return LlamaForCausalLM(LlamaConfig(vocab_size=32, hidden_size=width, **layers))


torch.manual_seed(0)
with tempfile.TemporaryDirectory() as folder:
    get_peft_model(make(16), LoraConfig(r=4, target_modules=["q_proj"])).save_pretrained(folder)
    model = PeftModel.from_pretrained(make(16), folder, is_trainable=True)

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
