import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.project, self.score = nn.Linear(8, 24), nn.Linear(8, 1)

    def forward(self, inputs):
        query, key, value = self.project(inputs).unsqueeze(1).chunk(3, dim=-1)
        return self.score(nn.functional.scaled_dot_product_attention(query, key, value)).mean()


torch.manual_seed(0)
critic = Critic()
optimizer = torch.optim.Adam(critic.parameters())
inputs = torch.rand(4, 6, 8, requires_grad=True)
with sdpa_kernel(SDPBackend.MATH):
    score = critic(inputs)
(slope,) = torch.autograd.grad(score, inputs, create_graph=True)
loss = score + (slope.flatten(1).norm(dim=1) - 1).pow(2).mean()
optimizer.zero_grad()
loss.backward()
optimizer.step()
