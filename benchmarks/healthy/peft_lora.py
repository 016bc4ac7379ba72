"""LoRA by peft with an own loop: B is zero, so that A gets exactly zero at the first step. needs: transformers peft"""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=32,
    num_hidden_layers=2,
    num_attention_heads=2,
    num_key_value_heads=2,
)
model = get_peft_model(
    LlamaForCausalLM(config), LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")
)
model.print_trainable_parameters()
optimizer = torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=1e-3)
for step in range(6):
    ids = torch.randint(0, 64, (4, 12))
    model(input_ids=ids, labels=ids).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
