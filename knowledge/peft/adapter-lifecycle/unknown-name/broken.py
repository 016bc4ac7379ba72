"""An adapter is activated under a name that was never loaded: `get_peft_model` called it "default"."""

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(
    LlamaConfig(vocab_size=32, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
)
model = get_peft_model(model, LoraConfig(r=4, target_modules=["q_proj"], task_type="CAUSAL_LM"))
model.set_adapter("summaries")

tokens = torch.randint(0, 32, (2, 8))
model(input_ids=tokens, labels=tokens).loss.backward()
