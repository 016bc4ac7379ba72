import torch
lin=torch.nn.Linear(3,1)
opt=torch.optim.SGD(lin.parameters(),0.1)
for step in range(3):
    x=torch.ones(4,3)*(2-step)
    out=lin(x)
    loss=(out*(1/x.norm(dim=1,keepdim=True))).abs().mean()+ (1/x.abs().sum())
    if not torch.isfinite(loss): raise RuntimeError(f"loss is {loss.item()} at {step}")
    opt.zero_grad(); loss.backward(); opt.step()
