# workers, pinned memory, non-blocking copies, a convolutional network in channels_last, evaluation
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.rand(64, 3, 16, 16), torch.randint(4, (64,)))
    loader = DataLoader(data, batch_size=16, shuffle=True, num_workers=2, pin_memory=True)
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3),
        nn.BatchNorm2d(16),
        nn.ReLU(inplace=True),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 4),
    )
    model = model.cuda().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        model.train()
        for images, labels in loader:
            images, labels = images.cuda(non_blocking=True), labels.cuda(non_blocking=True)
            loss = nn.functional.cross_entropy(model(images.to(memory_format=torch.channels_last)), labels)
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.inference_mode():
            right = sum((model(images.cuda()).argmax(1).cpu() == labels).sum().item() for images, labels in loader)
        print(epoch, right / 64)


if __name__ == "__main__":
    main()
