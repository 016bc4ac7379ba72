import torch
from torch import nn

torch.manual_seed(0)
model = nn.ModuleDict({"encoder": nn.Linear(4, 8), "output": nn.Linear(8, 1)}).requires_grad_(False)
model["output"].requires_grad_(True)
head = [parameter for name, parameter in model.named_parameters() if name.startswith("head")]
loss = model["output"](model["encoder"](torch.rand(8, 4)).tanh()).pow(2).mean()
loss.backward(inputs=head)
