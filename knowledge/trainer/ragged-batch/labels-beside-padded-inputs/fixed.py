"""A Trainer with a tokenizer pads the inputs, and leaves the labels of the tokens as long as they are."""

import tempfile

import torch
from tokenizers import Tokenizer, models
from transformers import (
    BertConfig,
    BertForTokenClassification,
    DataCollatorForTokenClassification,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
)

torch.manual_seed(0)
raw = Tokenizer(models.WordLevel({"[PAD]": 0, "[UNK]": 1}, unk_token="[UNK]"))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, pad_token="[PAD]", unk_token="[UNK]")
size = dict(hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2)
model = BertForTokenClassification(BertConfig(vocab_size=32, num_labels=3, **size))
rows = [{"input_ids": [5, 6, 7][:n], "labels": [0, 1, 2][:n]} for n in (3, 2, 3, 2)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(folder, max_steps=1, report_to="none", use_cpu=True, disable_tqdm=True)
    trainer = Trainer(model, arguments, train_dataset=rows,
                      processing_class=tokenizer, data_collator=DataCollatorForTokenClassification(tokenizer))
    trainer.train()
