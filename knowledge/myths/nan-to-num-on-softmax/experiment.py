"""`torch.nan_to_num(softmax(...))` for rows that are masked altogether."""

import torch

dead = torch.tensor([[False, False, True], [True, True, True]])


def additive(scores):
    return scores + torch.zeros(2, 3).masked_fill(dead, float("-inf"))


FORMS = {
    "additive -inf mask": lambda scores: torch.softmax(additive(scores), -1),
    "additive -inf mask, nan_to_num": lambda scores: torch.softmax(additive(scores), -1).nan_to_num(),
    "masked_fill(-inf), nan_to_num": lambda scores: torch.softmax(scores.masked_fill(dead, float("-inf")), -1).nan_to_num(),
    "masked_fill(finfo.min)": lambda scores: torch.softmax(scores.masked_fill(dead, torch.finfo().min), -1),
}
found = {}
for name, form in FORMS.items():
    scores = torch.tensor([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]], requires_grad=True)
    probs = form(scores)
    (probs * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    found[name] = scores.grad
    print(f"gradient of the dead row, {name}: {[round(one, 4) for one in scores.grad[1].tolist()]}")

plain, hidden, filled, finite = found.values()
assert plain[1].isnan().all() and hidden[1].isnan().all()
assert not filled.isnan().any() and not finite.isnan().any()
assert torch.allclose(filled[0], finite[0])
