"""A tokenizer with two more tokens than the embedding has rows."""

import torch
from transformers import BertConfig, BertForSequenceClassification

torch.manual_seed(0)

config = BertConfig(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
)
model = BertForSequenceClassification(config)
tokenizer_length = 32  # two special tokens were added
model.resize_token_embeddings(tokenizer_length)
ids = torch.tensor([[1, 5, 9, 31], [1, 7, 30, 2]])
loss = model(input_ids=ids, labels=torch.tensor([0, 1])).loss
loss.backward()
