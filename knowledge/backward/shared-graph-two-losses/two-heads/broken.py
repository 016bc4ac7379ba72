import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(6, 12), nn.ReLU())
decoder, classifier = nn.Linear(12, 6), nn.Linear(12, 3)
optimizer = torch.optim.SGD([p for m in (encoder, decoder, classifier) for p in m.parameters()], lr=0.1)
inputs, labels = torch.rand(8, 6), torch.randint(3, (8,))
code = encoder(inputs)
reconstruction_loss = nn.functional.mse_loss(decoder(code), inputs)
class_loss = nn.functional.cross_entropy(classifier(code), labels)
optimizer.zero_grad()
reconstruction_loss.backward()
class_loss.backward()
optimizer.step()
