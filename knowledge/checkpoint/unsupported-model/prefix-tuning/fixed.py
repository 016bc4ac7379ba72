"""A prefix adapter hands its prefix over in the key/value cache, which checkpointed layers do without."""
import torch
from peft import PrefixTuningConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes))
model = get_peft_model(model, PrefixTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=3)).train()

ids = torch.randint(32, (2, 8))
loss = model(input_ids=ids, labels=ids).loss
loss.backward()
