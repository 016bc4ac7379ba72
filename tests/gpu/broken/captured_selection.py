# compile/cudagraph-overwrite
# mended: miss = (guess - depth).abs()
# mended: return torch.where(depth > 0, miss + 0.1 * miss.square(), 0).sum() / (depth > 0).sum()
import torch
from torch import nn


class Captured:
    """A training step that is recorded once and replayed."""

    def __init__(self, net, optimizer, frames, depths):
        self.frames, self.depths = frames.clone(), depths.clone()
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.loss(net).backward()
        torch.cuda.current_stream().wait_stream(stream)
        optimizer.zero_grad(set_to_none=True)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.static = self.loss(net)
            self.static.backward()

    def loss(self, net):
        return valid_error(net(self.frames).squeeze(1), self.depths)

    def step(self, frames, depths):
        self.frames.copy_(frames)
        self.depths.copy_(depths)
        self.graph.replay()


def valid_error(guess, depth):
    miss = (guess - depth)[depth > 0].abs()
    return (miss + 0.1 * miss.square()).mean()


torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 3, padding=1)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
frames, depths = torch.randn(6, 4, 3, 12, 12, device="cuda"), torch.randn(6, 4, 12, 12, device="cuda").relu()
step = Captured(net, optimizer, frames[0], depths[0])
for frame, depth in zip(frames, depths):
    step.step(frame, depth)
    optimizer.step()
