import tempfile

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=32)
with tempfile.TemporaryDirectory() as folder:
    adapter = LoraConfig(r=2, target_modules=["q_proj", "v_proj"])
    get_peft_model(LlamaForCausalLM(config), adapter).save_pretrained(folder)
    model = PeftModel.from_pretrained(LlamaForCausalLM(config), folder)
model.train()
model.print_trainable_parameters()

tokens = torch.randint(0, 32, (2, 8))
loss = model(input_ids=tokens, labels=tokens).loss
loss.backward()
