"""A model loaded in 4 bits is cast with .half(), as one casts a model of floats."""
import tempfile

import torch
from transformers import BitsAndBytesConfig, LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
four_bits = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_compute_dtype=torch.float32)
with tempfile.TemporaryDirectory() as folder:
    LlamaForCausalLM(LlamaConfig(**sizes)).save_pretrained(folder)
    model = LlamaForCausalLM.from_pretrained(folder, quantization_config=four_bits, device_map="cpu")

ids = torch.randint(64, (2, 8))
model(input_ids=ids, labels=ids).loss.backward()
