import torch
from torch import nn

torch.manual_seed(0)
prompts, image_head = nn.Embedding(3, 8), nn.Linear(6, 8)
optimizer = torch.optim.SGD([*prompts.parameters(), *image_head.parameters()], lr=0.1)
images, labels = torch.rand(16, 6), torch.randint(3, (16,))
class_features = nn.functional.normalize(prompts(torch.arange(3)), dim=1)
for epoch in range(3):
    logits = image_head(images) @ class_features.T
    loss = nn.functional.cross_entropy(logits, labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
