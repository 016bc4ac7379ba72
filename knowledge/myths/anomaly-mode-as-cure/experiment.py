"""Anomaly mode where an in-place write overwrote a saved tensor: what is raised and what is added."""

import warnings

import torch


def fail(*, anomaly):
    x = torch.ones(3, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught, torch.autograd.set_detect_anomaly(anomaly):
        warnings.simplefilter("always")
        h = torch.exp(x)
        h += 1
        try:
            h.sum().backward()
            error = "none"
        except RuntimeError as failure:
            error = str(failure).partition(":")[0]
    shown = [str(one.message) for one in caught if "Error detected in" in str(one.message)]
    return error, shown, x.grad


plain, nothing, _ = fail(anomaly=False)
error, shown, gradient = fail(anomaly=True)
print("error:", plain)
print("error, anomaly mode:", error)
print("gradient, anomaly mode:", gradient)
print("warning, anomaly mode:", shown[0].partition(".")[0])
print("it shows the forward line:", "h = torch.exp(x)" in shown[0])
print("it shows the write:", "h += 1" in shown[0])

assert plain == error != "none" and gradient is None and not nothing
assert "h = torch.exp(x)" in shown[0] and "h += 1" not in shown[0]
