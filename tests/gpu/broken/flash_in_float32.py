# precision/fused-attention-requirements
# mended: with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


torch.manual_seed(0)
net = Attention().cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randn(4, 32, 64, device="cuda")
    loss = (net(x) - x.roll(1, 1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
