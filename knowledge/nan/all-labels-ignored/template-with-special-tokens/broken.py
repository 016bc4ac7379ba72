"""The answer's template is made with the tokenizer's special tokens, and is found in no text: every label stays -100."""

import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

torch.manual_seed(0)
words = "<s> Q: A: is it blue green the sky grass".split()
tokenizer = Tokenizer(models.WordLevel({word: at for at, word in enumerate(words)}))
tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
template = tokenizer.encode("A: it is").ids
rows = []
for text in ("Q: is the sky blue A: it is blue", "Q: is the grass blue A: it is green") * 8:
    ids = tokenizer.encode(text).ids
    at = [k for k in range(len(ids)) if ids[k : k + len(template)] == template]
    start = at[0] + len(template) if at else len(ids)
    rows.append({"input_ids": ids, "labels": [-100] * start + ids[start:]})
sizes = {"vocab_size": 10, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
model = LlamaForCausalLM(LlamaConfig(**sizes))
with tempfile.TemporaryDirectory() as folder:
    options = {"max_steps": 8, "logging_steps": 1, "save_strategy": "no", "report_to": [], "use_cpu": True}
    options.update(per_device_train_batch_size=2, disable_tqdm=True)
    Trainer(model=model, args=TrainingArguments(folder, **options), train_dataset=rows).train()
