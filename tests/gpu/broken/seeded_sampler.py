# device/mixed-devices
# mended: self.stream = torch.Generator(device="cuda")
import torch
from torch import nn


class Sampler:
    def __init__(self, seed):
        self.stream = torch.Generator()
        self.stream.manual_seed(seed)

    def __call__(self, mean, logvar):
        eps = torch.randn(mean.shape, generator=self.stream, device=mean.device)
        return mean + eps * (0.5 * logvar).exp()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode, self.decode = nn.Linear(8, 6), nn.Linear(3, 8)
        self.sample = Sampler(3)

    def forward(self, x):
        mean, logvar = self.encode(x).chunk(2, dim=1)
        return self.decode(self.sample(mean, logvar))


torch.manual_seed(0)
model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for step in range(6):
    x = torch.randn(16, 8, device="cuda")
    loss = nn.functional.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
