import torch

torch.manual_seed(0)
centres = torch.rand(6, 2, requires_grad=True)
scene = {"centres": centres, "sizes": torch.cdist(centres, centres).mean(1).log()}
optimizer = torch.optim.Adam([{"params": [part], "name": name} for name, part in scene.items()], lr=0.01)

points, target = torch.rand(32, 1, 2), torch.rand(32)
distance = (points - scene["centres"]).square().sum(-1)
image = torch.exp(-distance / scene["sizes"].exp()).sum(-1)
loss = (image - target).square().mean()
loss.backward()
optimizer.step()
