# trainer/conflicting-options
# mended: return {"x": x, "y": y}
# mended: batch = {key: value.to(device) for key, value in batch.items()}
import torch
from torch import nn
from torch.utils.data import DataLoader

device = torch.device("cuda")


def collate(rows):
    x, y = torch.stack([x for x, _ in rows]), torch.stack([y for _, y in rows])
    return {"x": x.to(device), "y": y.to(device)}


def main():
    torch.manual_seed(0)
    rows = [(torch.randn(8), torch.randn(1)) for _ in range(64)]
    loader = DataLoader(rows, batch_size=16, shuffle=True, collate_fn=collate, num_workers=2)
    model = nn.Linear(8, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for batch in loader:
            loss = nn.functional.mse_loss(model(batch["x"]), batch["y"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


if __name__ == "__main__":
    main()
