# device/mixed-devices
# mended: guesses.append(self.net(waves).sigmoid().squeeze(1).cpu())
import numpy as np
import torch
from torch import nn


def area_under_curve(guesses, truth):
    guesses, truth = np.concatenate(guesses), np.concatenate(truth)
    above = guesses[truth == 1][:, None] > guesses[truth == 0][None]
    return above.mean()


class Detector:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(24, 16), nn.ReLU(), nn.Linear(16, 1)).to("cuda")
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-2)

    def fit(self, batches):
        for waves, truth in batches:
            loss = nn.functional.binary_cross_entropy_with_logits(self.net(waves.cuda()).squeeze(1), truth.cuda())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @torch.inference_mode()
    def rate(self, batches):
        guesses, truths = [], []
        for waves, truth in batches:
            waves = waves.cuda()
            guesses.append(self.net(waves).sigmoid().squeeze(1))
            truths.append(truth)
        return area_under_curve(guesses, truths)


torch.manual_seed(0)
waves = torch.randn(96, 24)
batches = list(zip(waves.split(16), (waves[:, 0] > 0).float().split(16)))
detector = Detector()
for epoch in range(3):
    detector.fit(batches)
    print(epoch, detector.rate(batches))
