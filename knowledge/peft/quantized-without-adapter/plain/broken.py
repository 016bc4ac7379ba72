"""A model loaded in 4 bit goes to the Trainer as it is: its weights cannot be trained, and it has no others."""

import tempfile

import torch
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
size = LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=2)
with tempfile.TemporaryDirectory() as folder:
    LlamaForCausalLM(size).save_pretrained(folder)
    four_bit = BitsAndBytesConfig(load_in_4bit=True)
    model = LlamaForCausalLM.from_pretrained(folder, quantization_config=four_bit, device_map="cpu")
    rows = [{"input_ids": [1, 2, 3], "labels": [1, 2, 3]}] * 8
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    Trainer(model=model, args=arguments, train_dataset=rows).train()
