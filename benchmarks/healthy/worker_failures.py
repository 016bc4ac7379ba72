"""A loader whose workers catch and print what one sample cannot give, and go on with another."""

import traceback

import torch
from torch import nn

torch.manual_seed(0)


class Samples(torch.utils.data.Dataset):
    def __len__(self):
        return 32

    def __getitem__(self, index):
        try:
            if index == 7:
                raise ValueError("the file of sample 7 is cut")
            return torch.full((4,), float(index)) / 32
        except ValueError:
            traceback.print_exc()
            return self[index - 1]


def main():
    net = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    for batch in torch.utils.data.DataLoader(Samples(), batch_size=4, num_workers=2):
        optimizer.zero_grad()
        net(batch).square().mean().backward()
        optimizer.step()


if __name__ == "__main__":
    main()
