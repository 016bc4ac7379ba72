"""A Trainer gets neither a tokenizer nor a collator, and the texts are of several lengths."""

import tempfile

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

torch.manual_seed(0)
raw = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1, "good": 2, "bad": 3}, unk_token="[UNK]"))
raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]")
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = BertForSequenceClassification(BertConfig(vocab_size=32, num_labels=2, **size))
rows = [{**tokenizer(text), "labels": int("bad" in text)} for text in ("good", "bad film", "good", "bad film")]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model, arguments, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer))
    trainer.train()
