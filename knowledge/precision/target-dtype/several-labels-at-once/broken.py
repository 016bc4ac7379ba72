"""A classifier of transformers for several labels at once: its loss takes each label as a probability."""

import torch
from transformers import BertConfig, BertForSequenceClassification

ROWS = [{"ids": [1, 5, 7, 2], "tags": [1, 0, 1]}, {"ids": [1, 9, 3, 2], "tags": [0, 0, 1]}]


def collate(rows):
    return {
        "input_ids": torch.tensor([row["ids"] for row in rows]),
        "labels": torch.tensor([row["tags"] for row in rows]),
    }


torch.manual_seed(0)
config = BertConfig(
    vocab_size=16, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, num_labels=3,
    problem_type="multi_label_classification",
)
model = BertForSequenceClassification(config)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = model(**collate(ROWS)).loss
loss.backward()
optimizer.step()
