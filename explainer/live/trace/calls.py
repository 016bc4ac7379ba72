"""Calls of torch that compute nothing from the values of a tensor."""

from __future__ import annotations

# Calls that ask for what is known of a tensor, and those that switch a mode.
ASK = frozenset(
    ("__get__", "__set__", "dim", "size", "stride", "numel", "is_complex", "is_floating_point", "is_contiguous", "element_size", "__len__", "__hash__",
     "storage_offset", "data_ptr", "untyped_storage", "is_conj", "is_neg", "is_inference", "_is_view", "__repr__", "__format__",
     "_set_grad_enabled", "_record_function_enter_new", "_record_function_exit._RecordFunction", "register_hook", "retain_grad",
     "get_device", "nelement", "ndimension", "_make_subclass", "__dir__", "is_same_size", "result_type", "can_cast",
     "_has_compatible_shallow_copy_type", "is_tensor", "is_storage", "set_grad_enabled", "is_nonzero", "names")
)  # fmt: skip
# Calls that read shape and dtype of a tensor, and none of its values.
SHAPED_LIKE = frozenset(
    ("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "new_zeros", "new_ones",
     "new_empty", "new_full", "new_empty_strided")
)  # fmt: skip
