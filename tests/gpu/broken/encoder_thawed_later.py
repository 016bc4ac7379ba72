# precision/scaler-misuse
# mended: if any(p.grad is not None for group in encoder_optimizer.param_groups for p in group["params"]):
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.GRU(8, 16, batch_first=True)
        self.tags = nn.Linear(16, 5)

    def forward(self, words):
        return self.tags(self.encoder(words)[0])


torch.manual_seed(0)
tagger = Tagger().cuda()
encoder_optimizer = torch.optim.AdamW(tagger.encoder.parameters(), lr=1e-3)
tags_optimizer = torch.optim.AdamW(tagger.tags.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cuda", init_scale=256.0)
for epoch in range(3):
    for weight in tagger.encoder.parameters():
        weight.requires_grad = epoch > 0
    for step in range(4):
        words, tags = torch.randn(16, 7, 8, device="cuda"), torch.randint(5, (16, 7), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(tagger(words).flatten(0, 1).float(), tags.flatten())
        encoder_optimizer.zero_grad()
        tags_optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(encoder_optimizer)
        scaler.step(tags_optimizer)
        scaler.update()
