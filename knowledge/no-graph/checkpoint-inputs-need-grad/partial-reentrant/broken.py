from functools import partial

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.checkpoint import checkpoint
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=32)
model = get_peft_model(LlamaForCausalLM(config), LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
model.base_model.model._set_gradient_checkpointing(gradient_checkpointing_func=partial(checkpoint, use_reentrant=True))
model.train()
model.print_trainable_parameters()
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

tokens = torch.randint(0, 32, (2, 8))
loss = model(input_ids=tokens, labels=tokens).loss
loss.backward()
optimizer.step()
