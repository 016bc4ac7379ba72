"""The calls of tokenizers of transformers and tokenizers that leave it to them whether to add special tokens."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from explainer.source.data.sought import Held
from explainer.source.file import SourceFile
from explainer.source.name import dotted_name
from explainer.source.program import Program
from explainer.source.value.binding import Value
from explainer.source.value.callee import callees_of
from explainer.source.value.resolve import resolver_of

NAMES = re.compile(r"tok(?:enizer|eniser)?$|processing_class$", re.IGNORECASE)
_LIBRARIES = frozenset({"transformers", "tokenizers", "trl", "unsloth", "modelscope"})
_OTHERS = frozenset({"tiktoken", "sentencepiece", "mistral_common"})  # whose `encode` adds none, or says so otherwise
_LOADERS = frozenset({"from_pretrained", "from_file", "from_str", "from_buffer"})
_SETTLED = frozenset({"add_special_tokens", "text_pair", "pair", None})
_MARKERS = frozenset({"add_bos_token", "add_eos_token"})
# Of these models' tokenizers none adds anything to a text.
_PLAIN = ("GPT2", "GPTNeoX", "Qwen", "Bloom")
_PLAIN_CHECKPOINT = re.compile(r"gpt2|gpt-neo|gpt-j|pythia|qwen|bloom", re.IGNORECASE)


def calls_of_tokenizers(program: Program) -> Iterator[Held]:
    """What they make of the one text that they are given, as token ids or as an encoding that holds them."""
    for file in program.parsed():
        for node in file.walk():
            if not isinstance(node, ast.Call) or len(node.args) != 1 or isinstance(node.args[0], ast.Starred):
                continue
            func, given = node.func, {one.arg for one in node.keywords}
            method = func.attr if isinstance(func, ast.Attribute) else ""
            owner = func.value if isinstance(func, ast.Attribute) and method in ("encode", "encode_plus") else func
            if not given & _SETTLED and _adds_tokens(owner, file, program):
                is_nested = "return_tensors" in given or isinstance(node.args[0], (ast.List, ast.ListComp, ast.Tuple))
                yield Held(node=node, file=file, depth=2 if is_nested else 1, is_encoding=method != "encode")


def _adds_tokens(node: ast.expr, file: SourceFile, program: Program) -> bool:
    """Whether an object is a tokenizer that may add some: by what makes it, by its name where that is not seen."""
    if callees_of(node, file, program):
        return False
    made = [one for one in resolver_of(program).constructors_of(Value(node, file)) if isinstance(one.node, ast.Call)]
    known = {_is_made_so(one, program) for one in made} or {None}
    if False in known:
        return False
    is_named = NAMES.search((dotted_name(node) or "").rpartition(".")[2]) is not None
    imported = {meant.partition(".")[0] for one in program.parsed() for meant in program.names(one).imports.values()}
    return None not in known or (is_named and bool(imported & _LIBRARIES) and not imported & _OTHERS)


def _is_made_so(made: Value, program: Program) -> bool | None:
    """Whether a call makes a tokenizer that may add special tokens; None where its library is another one."""
    call = made.node
    assert isinstance(call, ast.Call)
    owner = resolver_of(program).find_class(call.func, made.file)
    if owner is not None:
        return _leaves_calls_to_base(owner[1], owner[0], program)
    library, _, called = (program.names(made.file).qualified(call.func) or "").partition(".")
    front, _, last = called.rpartition(".")
    kind = front.rpartition(".")[2] if last in _LOADERS else last
    if library not in _LIBRARIES or "Tokenizer" not in kind:
        return None
    source = call.args[0] if last in _LOADERS and call.args else None
    name = source.value if isinstance(source, ast.Constant) else ""
    if kind.startswith(_PLAIN) or (isinstance(name, str) and _PLAIN_CHECKPOINT.search(name)):
        return False
    given = {one.arg for one in call.keywords}
    is_built = "tokenizer_object" in given or (kind == "Tokenizer" and last == kind)
    return not is_built or bool(given & _MARKERS) or any(_has_processor(one) for one in program.parsed())


def _leaves_calls_to_base(owner: ast.ClassDef, file: SourceFile, program: Program) -> bool:
    """Whether a class of the program puts special tokens into what a base of transformers encodes, which takes the option."""
    resolver = resolver_of(program)
    bases = [dotted_name(base) or "" for base in owner.bases if resolver.find_class(base, file) is None]
    is_own = any(resolver.method(owner, name, file) for name in ("encode", "encode_plus", "__call__"))
    is_told = resolver.method(owner, "build_inputs_with_special_tokens", file) is not None
    return is_told and not is_own and any("PreTrainedTokenizer" in base for base in bases)


def _has_processor(file: SourceFile) -> bool:
    """Whether a file gives a tokenizer of its own making what adds special tokens."""
    return "post_processor" in file.attributes
