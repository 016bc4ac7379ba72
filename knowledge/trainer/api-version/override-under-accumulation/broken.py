"""An override from before transformers 4.46, under gradient accumulation: a model that takes `num_items_in_batch` sums the batches' losses."""

import tempfile

import torch
from transformers import BertConfig, BertForTokenClassification, Trainer, TrainingArguments


class SmoothTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        outputs = model(**inputs)
        loss = torch.nn.functional.cross_entropy(
            outputs.logits.flatten(0, 1), inputs["labels"].flatten(), label_smoothing=0.1
        )
        return (loss, outputs) if return_outputs else loss


torch.manual_seed(0)
size = BertConfig(vocab_size=32, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
model = BertForTokenClassification(size)
rows = [{"input_ids": [1, 2, 3 + row % 4], "labels": [0, 1, row % 2]} for row in range(16)]
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        max_steps=2,
        per_device_train_batch_size=2,
        gradient_accumulation_steps=4,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    SmoothTrainer(model=model, args=arguments, train_dataset=rows).train()
