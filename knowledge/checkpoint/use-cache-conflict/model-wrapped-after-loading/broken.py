"""PyTorch's wrapper checkpoints the layers, so that the model does not know of it and leaves its cache on."""
import torch
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import apply_activation_checkpointing
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.llama.modeling_llama import LlamaDecoderLayer

torch.manual_seed(0)
sizes = {"vocab_size": 32, "hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes, attn_implementation="eager")).train()
apply_activation_checkpointing(model, check_fn=lambda module: isinstance(module, LlamaDecoderLayer))

ids = torch.randint(32, (2, 8))
loss = model(input_ids=ids, labels=ids, use_cache=True).loss
loss.backward()
