import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=32)
model = LlamaForCausalLM(config)
model = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj"], inference_mode=True), adapter_name="old")
model.add_adapter("new", LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
model.train()

tokens = torch.randint(0, 32, (2, 8))
loss = model(input_ids=tokens, labels=tokens).loss
loss.backward()
