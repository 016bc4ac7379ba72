"""The log-probability of an answer is picked by labels of which -100 marks the prompt."""

import torch
from torch import nn

torch.manual_seed(0)
embed, head = nn.Embedding(20, 8), nn.Linear(8, 20)
optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], lr=1e-2)


def answer_log_prob(logits, labels):
    log_probs = logits.log_softmax(-1)
    picked = log_probs.gather(-1, labels.unsqueeze(-1)).squeeze(-1)
    return picked.sum(-1)


for _ in range(3):
    ids = torch.randint(0, 20, (4, 6))
    labels = ids.clone()
    labels[:, :2] = -100
    loss = -answer_log_prob(head(embed(ids[:, :-1])), labels[:, 1:]).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
