"""A new adapter is made from the configuration of a saved one, which PEFT saves for inference."""

import tempfile

import torch
from peft import LoraConfig, PeftConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
size = LlamaConfig(
    vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, pad_token_id=0
)
with tempfile.TemporaryDirectory() as folder:
    get_peft_model(LlamaForCausalLM(size), LoraConfig(r=2, target_modules=["q_proj", "v_proj"])).save_pretrained(folder)
    recipe = PeftConfig.from_pretrained(folder)
    recipe.inference_mode = False

model = get_peft_model(LlamaForCausalLM(size), recipe)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
ids = torch.randint(1, 32, (4, 8))

for _ in range(3):
    loss = model(input_ids=ids, labels=ids).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
