import torch
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
config = LlamaConfig(hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, vocab_size=32)
model = LlamaForCausalLM(config)
model = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj", "v_proj"]))
model = prepare_model_for_kbit_training(model)
model.train()
model.print_trainable_parameters()

tokens = torch.randint(0, 32, (2, 8))
loss = model(input_ids=tokens, labels=tokens).loss
loss.backward()
