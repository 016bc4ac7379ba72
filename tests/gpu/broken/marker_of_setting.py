# shape/index-out-of-range device/device-side-assert
# mended: OPTIONS = {"loss": {"ignore_index": 255, "label_smoothing": 0.05}, "classes": 4}
import torch
from torch import nn

VOID = 255
OPTIONS = {"loss": {"ignore_index": -1, "label_smoothing": 0.05}, "classes": 4}
LOSSES = {"pixels": nn.CrossEntropyLoss, "edges": nn.BCEWithLogitsLoss}

torch.manual_seed(0)
model = nn.Conv2d(1, OPTIONS["classes"], 3, padding=1).to("cuda")
criterion = LOSSES["pixels"](**OPTIONS["loss"])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    images, masks = torch.randn(4, 1, 12, 12), torch.randint(0, 4, (4, 12, 12))
    masks[:, 0] = VOID
    loss = criterion(model(images.to("cuda")), masks.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
