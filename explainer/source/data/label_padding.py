"""Which collator of transformers pads the labels of a model, and whether what reads them leaves the padding out."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from explainer.source.file import SourceFile
from explainer.source.name import Function, Names, bound_names
from explainer.source.program import Program
from explainer.source.tree import walk
from explainer.source.value.binding import Value, find_calls
from explainer.source.value.number import number_of
from explainer.source.value.resolve import resolver_of

_OF_TOKENS = ("ForTokenClassification", "ForMaskedLM")
_DECODERS = ("ForCausalLM", "LMHeadModel")
# Encoders with a decoder that take text; others of `ForConditionalGeneration` take images or sound.
_TEXT = ("T5", "MT5", "UMT5", "LongT5", "Bart", "MBart", "Pegasus", "PegasusX", "LED", "Blenderbot", "BlenderbotSmall", "M2M100",
         "BigBirdPegasus", "ProphetNet", "XLMProphetNet", "SwitchTransformers", "NllbMoe", "PLBart", "Mvp", "FSMT")  # fmt: skip
_ENCODER_DECODER = ("AutoModelForSeq2SeqLM", "EncoderDecoderModel", "MarianMTModel", *(f"{one}ForConditionalGeneration" for one in _TEXT))  # fmt: skip
_FACTORIES = (".from_pretrained", ".from_config", ".from_encoder_decoder_pretrained")
_IGNORING = frozenset({"cross_entropy", "CrossEntropyLoss", "nll_loss", "NLLLoss"})
# What tells which word, or which character, a token came from.
_POST = frozenset({"post_processor", "TemplateProcessing"})
_ALIGNING = frozenset(
    {"word_ids", "char_to_token", "word_to_tokens", "token_to_word", "token_to_chars", "offset_mapping", "char_to_word"}
    | {"return_offsets_mapping", "convert_tokens_to_ids"}
)  # fmt: skip
_ENCODERS = frozenset({"encode", "encode_plus", "batch_encode_plus", "tokenize"})
_IGNORED = -100


@dataclass(frozen=True, slots=True)
class Collator:
    """A collator by its name in transformers. `is_by_token`: there is one label for each token of the input.

    `pads_labels`: labels are sequences; else a row has one label, or one for each class, and the inputs alone are padded.
    """

    name: str
    takes_model: bool = False
    is_by_token: bool = True
    pads_labels: bool = True


def collator_for(model: ast.expr | None, file: SourceFile, program: Program) -> Collator | None:
    """The collator that a model's labels need; without a model, that of all models which the program makes, if it is one."""
    if model is not None:
        made = [
            one.node
            for one in resolver_of(program).constructors_of(Value(model, file))
            if isinstance(one.node, ast.Call)
        ]
        classes = {_made_class(one, program.names(file)) for one in made}
        found = {_of_class(one) for one in classes}
        if "" not in classes:
            return found.pop() if len(found) == 1 else None
        # Which of several classes it is a setting says; where labels are spread over the words' tokens there is one for each.
        each = {_of_class(one) for one in _named_classes(program)} - {None} if made else set()
        aligned = any(_speaks_of(node, _ALIGNING) for where in program.parsed() for node in where.walk())
        return each.pop() if len(each) == 1 and aligned else None
    every = {_of_class(_made_class(one, program.names(where))) for where in program.parsed() for one in where.walk()
             if isinstance(one, ast.Call)} - {None}  # fmt: skip
    return every.pop() if len(every) == 1 else None


def _named_classes(program: Program) -> set[str]:
    """The classes of transformers that a program names."""
    found = set()
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            name = names.qualified(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
            if name is not None and name.startswith("transformers."):
                found.add(name.rpartition(".")[2])
    return found


def _made_class(call: ast.Call, names: Names) -> str:
    """The class of transformers of which a call makes an object; "" for any other call."""
    name = names.qualified(call.func) or ""
    for ending in _FACTORIES:
        name = name.removesuffix(ending)
    return name.rpartition(".")[2] if name.startswith("transformers.") else ""


def _of_class(name: str) -> Collator | None:
    if name.endswith(_OF_TOKENS):
        return Collator("DataCollatorForTokenClassification")
    if name.endswith(_DECODERS):
        return Collator("DataCollatorForSeq2Seq")
    if name in _ENCODER_DECODER:
        return Collator("DataCollatorForSeq2Seq", takes_model=True, is_by_token=False)
    if name.endswith("ForSequenceClassification"):
        return Collator("DataCollatorWithPadding", is_by_token=False, pads_labels=False)
    return None


def is_label_of_each_token(collator: Collator, program: Program) -> bool:
    """Whether labels are as the collator takes them: one a token where it is to be so, a text of their own where not.

    Labels of words that were never spread over their tokens would be padded into a batch, and stand beside other tokens.
    """
    if not collator.is_by_token:
        return True
    texts, encodes, aligns = False, False, False
    for file in program.parsed():
        names = program.names(file)
        for node in file.walk():
            aligns = aligns or _speaks_of(node, _ALIGNING) or _is_ignored(node, names) or _copies_inputs(node)
            texts = texts or (isinstance(node, ast.keyword) and node.arg == "text_target")
            if isinstance(node, ast.Call) and _encodes(node, file, program):
                encodes = True
                if collator.name.endswith("Seq2Seq") and any(one.arg == "padding" for one in node.keywords):
                    return False  # inputs of one length already: labels padded to their own longest would be shorter
    return not texts and (aligns or not encodes or _splits_no_word(program))


def _splits_no_word(program: Program) -> bool:
    """Whether the program's own tokenizer makes one token of each word, and adds none: `Tokenizer(models.WordLevel(vocab))`."""
    calls = [(program.names(file).qualified(call.func) or "", call) for file, call in find_calls(program)]
    made = {name.rpartition(".")[2] for name, _ in calls if name.startswith("tokenizers.models.")}
    adds = any(_speaks_of(one, _POST) for file in program.parsed() for one in file.walk())
    loads = any(name.endswith("Tokenizer.from_pretrained") for name, _ in calls)
    return made == {"WordLevel"} and not adds and not loads


def _speaks_of(node: ast.AST, words: frozenset[str]) -> bool:
    said = node.attr if isinstance(node, ast.Attribute) else node.arg if isinstance(node, ast.keyword) else None
    said = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else said
    return said in words


def _is_ignored(node: ast.AST, names: Names) -> bool:
    return isinstance(node, ast.UnaryOp) and number_of(node, names) == _IGNORED


def _copies_inputs(node: ast.AST) -> bool:
    """Whether labels are made of the tokens themselves: `out["labels"] = out["input_ids"].copy()`."""
    if isinstance(node, ast.Dict):
        pairs = list(zip(node.keys, node.values, strict=True))
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
        pairs = [(node.targets[0].slice, node.value)]
    else:
        return False
    return any(
        isinstance(key, ast.Constant)
        and key.value == "labels"
        and any(isinstance(one, ast.Constant) and one.value == "input_ids" for one in walk(value))
        for key, value in pairs
    )


def _encodes(call: ast.Call, file: SourceFile, program: Program) -> bool:
    """Whether a call turns text into tokens: a tokenizer's own call, or its `encode`."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _ENCODERS:
        return not (func.attr == "encode" and not is_tokenizer(Value(func.value, file), program))
    is_own = resolver_of(program).function_of(call, Value(call, file)) is not None
    return isinstance(func, (ast.Name, ast.Attribute)) and not is_own and is_tokenizer(Value(func, file), program)


def is_tokenizer(value: Value, program: Program, *, sure: bool = False) -> bool:
    """Whether an expression is a tokenizer of transformers; where what made it is not seen, by its name, unless `sure`."""
    made = [one for one in resolver_of(program).constructors_of(value) if isinstance(one.node, ast.Call)]
    if made:
        return any(
            _made_class(one.node, program.names(one.file)).endswith(("Tokenizer", "TokenizerFast"))
            for one in made
            if isinstance(one.node, ast.Call)
        )
    name = value.node.attr if isinstance(value.node, ast.Attribute) else getattr(value.node, "id", "")
    return not sure and ("tokenizer" in name or name in ("tok", "processing_class"))


def ignores_padding(part: Function | ast.Module, names: Names) -> bool:
    """Whether all losses that a part of a file computes leave out labels of -100, as cross entropy and the model's own do."""
    own = {one.name for one in names.functions} | {
        name for one in walk(part) if isinstance(one, ast.Assign) for name in bound_names(one)
    }
    for node in walk(part):
        if not isinstance(node, ast.Call):
            continue
        name = (names.qualified(node.func) or "").rpartition(".")[2]
        given = {one.arg: one.value for one in node.keywords}
        if name in _IGNORING:
            ignored = given.get("ignore_index")
            if (ignored is not None and number_of(ignored, names) != _IGNORED) or "reduction" in given:
                return False
        elif "cross_entropy" in name or ("loss" in name.lower() and not {name, names.qualified(node.func)} & own):
            return False
    return True
