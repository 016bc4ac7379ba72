"""The model class has no activation checkpointing."""
import torch
from transformers import ResNetConfig, ResNetForImageClassification

torch.manual_seed(0)
config = ResNetConfig(num_channels=3, embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic", num_labels=2)
model = ResNetForImageClassification(config).train()

loss = model(pixel_values=torch.randn(2, 3, 32, 32), labels=torch.tensor([0, 1])).loss
loss.backward()
