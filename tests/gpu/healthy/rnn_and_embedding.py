# cuDNN's LSTM and an embedding whose gradient is summed in no fixed order
import torch
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.head = (
            nn.Embedding(50, 32),
            nn.LSTM(32, 64, num_layers=2, dropout=0.2, batch_first=True),
            nn.Linear(64, 50),
        )

    def forward(self, tokens, state=None):
        out, state = self.rnn(self.embed(tokens), state)
        return self.head(out), tuple(one.detach() for one in state)


model = Model().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
state = None
for step in range(12):
    tokens = torch.randint(50, (8, 33), device="cuda")
    logits, state = model(tokens[:, :-1], state)
    loss = nn.functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
