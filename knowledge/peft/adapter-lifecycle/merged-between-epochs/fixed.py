"""An evaluation between two epochs merges the adapter into the model that trains on: its layers are plain and frozen then."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
base = LlamaForCausalLM(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
model = get_peft_model(base, LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)
tokens = torch.randint(0, 32, (2, 8))


@torch.no_grad()
def evaluate(model, tokens):
    model.eval()
    return model(input_ids=tokens, labels=tokens).loss.item()


for epoch in range(2):
    model.train()
    optimizer.zero_grad()
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    evaluate(model, tokens)
