"""A tokenizer without a padding token, as GPT-2's and LLaMA's are, is asked to pad a batch."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

torch.manual_seed(0)
raw = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, "a": 2, "lion": 3, "sleeps": 4}, unk_token="<unk>"))
raw.pre_tokenizer = pre_tokenizers.Whitespace()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, unk_token="<unk>", eos_token="</s>")
tokenizer.pad_token = tokenizer.eos_token
batch = tokenizer(["a lion sleeps", "a lion"], padding=True, return_tensors="pt")

size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = LlamaForCausalLM(LlamaConfig(vocab_size=5, **size))
labels = batch["input_ids"].masked_fill(batch["attention_mask"] == 0, -100)
model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], labels=labels).loss.backward()
