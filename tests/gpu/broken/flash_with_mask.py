# precision/fused-attention-requirements
# mended: OPTIONS = {"width": 64, "heads": 4, "kernel": "any"}
import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

KERNELS = {
    "flash": [SDPBackend.FLASH_ATTENTION],
    "product": SDPBackend.MATH,
    "any": [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
}
OPTIONS = {"width": 64, "heads": 4, "kernel": "flash"}


class Attention(nn.Module):
    def __init__(self, width, heads, kernel):
        super().__init__()
        self.qkv, self.out, self.heads = nn.Linear(width, 3 * width), nn.Linear(width, width), heads
        self.kernel = KERNELS[kernel]

    def forward(self, x, seen):
        b, t, w = x.shape
        q, k, v = (one.view(b, t, self.heads, -1).transpose(1, 2) for one in self.qkv(x).chunk(3, -1))
        with sdpa_kernel(self.kernel):
            y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        return self.out(y.transpose(1, 2).reshape(b, t, w))


torch.manual_seed(0)
net = Attention(**OPTIONS).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
for step in range(6):
    x = torch.randn(4, 32, 64, device="cuda")
    seen = (torch.arange(32, device="cuda") < 30).expand(4, 1, 32, 32)
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = (net(x, seen) - x.roll(1, 1)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
