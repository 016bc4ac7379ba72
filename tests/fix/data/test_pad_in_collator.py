"""Labels are padded where the inputs are, by the collator of transformers that the model's head asks for."""

from __future__ import annotations

import pathlib

import pytest

from explainer.fix.codemod import Context, find_codemod
from explainer.fix.splice import splice
from tests.fix.rewriting import changed_lines, failed, line_of, rewritten, write

LABELS = (
    "Unable to create tensor, you should probably activate truncation and/or padding with 'padding=True' 'truncation=True' to "
    "have batched tensors with the same length. Perhaps your features (`labels` in this case) have excessive nesting"
)
INPUTS = LABELS.replace("`labels`", "`input_ids`")
ROWS = "expected sequence of length 11 at dim 1 (got 5)"
HEAD = """from torch.utils.data import DataLoader
from transformers import (AutoModelForTokenClassification, AutoTokenizer, DataCollatorWithPadding,
                          Trainer, TrainingArguments, default_data_collator)

tokenizer = AutoTokenizer.from_pretrained("x")
model = AutoModelForTokenClassification.from_pretrained("x", num_labels=3)
"""
ALIGNED = """

def encode(row):
    out = tokenizer(row["words"], is_split_into_words=True)
    out["labels"] = [-100 if at is None else row["tags"][at] for at in out.word_ids()]
    return out


rows = rows.map(encode)
"""
WORDS = """

def encode(row):
    return {**tokenizer(row["words"], is_split_into_words=True), "labels": row["tags"]}


"""
TRAINER = "Trainer(model=model, train_dataset=rows, processing_class=tokenizer).train()\n"
SEQ2SEQ = """from transformers import T5ForConditionalGeneration, Seq2SeqTrainer, T5TokenizerFast


def build(name):
    return T5ForConditionalGeneration.from_pretrained(name)


tokenizer = T5TokenizerFast.from_pretrained("t5")
model = build("t5")
rows = rows.map(lambda row: {**tokenizer(row["a"]), "labels": tokenizer(text_target=row["b"])["input_ids"]})
"""
CAUSAL = """import transformers

tokenizer = transformers.AutoTokenizer.from_pretrained("x")
model = transformers.AutoModelForCausalLM.from_pretrained("x")
"""
OWN_LOSS = """class Weighted(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False):
        labels = inputs.pop("labels")
        out = model(**inputs)
        return LOSS


"""
OWN_TRAINER = "Weighted(model=model, train_dataset=rows, processing_class=tokenizer).train()\n"
PAD = "def collate(rows):\n    return tokenizer.pad(rows, RETURN)\n\n\nfor batch in DataLoader(rows, collate_fn=collate):\n    pass\n"


def _own(loss: str) -> str:
    return (
        HEAD
        + "import torch\nimport torch.nn.functional as F\n"
        + OWN_LOSS.replace("LOSS", loss)
        + ALIGNED
        + OWN_TRAINER
    )


CLASSIFIED = HEAD.replace("ForTokenClassification", "ForSequenceClassification") + (
    "rows = rows.map(lambda row: {**tokenizer(row['text'], truncation=True), 'labels': row['stars']})\n"
)
WHOLE = HEAD.replace(
    'tokenizer = AutoTokenizer.from_pretrained("x")',
    "from tokenizers import Tokenizer, models\nfrom transformers import PreTrainedTokenizerFast\n"
    'tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel(vocab)), pad_token="<pad>")',
)
RIGHT = {
    "words that may be several tokens": (
        WHOLE.replace("WordLevel(vocab)", "BPE(vocab, merges)") + WORDS + TRAINER,
        LABELS,
    ),
    "words between tokens that are added": (
        f"{WHOLE}tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single)\n{WORDS}{TRAINER}",
        LABELS,
    ),
    "another failure": (HEAD + ALIGNED + TRAINER, "it failed"),
    "the inputs are ragged, beside a collator that pads them": (HEAD + ALIGNED + TRAINER, INPUTS),
    "labels of words that no token got": (HEAD + WORDS + TRAINER, LABELS),
    "one label a row": (
        HEAD.replace("ForTokenClassification", "ForSequenceClassification") + ALIGNED + TRAINER,
        LABELS,
    ),
    "a model that is not seen": (HEAD.replace("model = Auto", "other = Auto") + ALIGNED + TRAINER, LABELS),
    "the right collator already": (
        HEAD + ALIGNED + TRAINER.replace("rows,", "rows, data_collator=DataCollatorForTokenClassification(tokenizer),"),
        LABELS,
    ),
    "a collator of one's own": (HEAD + ALIGNED + TRAINER.replace("rows,", "rows, data_collator=collate,"), LABELS),
    "arguments that are not seen": (HEAD + ALIGNED + TRAINER.replace("rows,", "rows, **more,"), LABELS),
    "a loss that counts padding as a class": (_own("F.cross_entropy(out.logits, labels, ignore_index=0)"), LABELS),
    "a loss that averages over padding": (_own('F.cross_entropy(out.logits, labels, reduction="none").mean()'), LABELS),
    "a loss that does not know -100": (_own("self.focal_loss(out.logits, labels)"), LABELS),
    "a processor of images": (
        HEAD.replace("AutoTokenizer", "AutoImageProcessor") + ALIGNED + TRAINER,
        LABELS,
    ),
    "texts beside the collator that pads them": (
        CLASSIFIED
        + "Trainer(model=model, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer)).train()\n",
        ROWS,
    ),
    "tensors of several lengths that the program stacks": (
        CLASSIFIED + "Trainer(model=model, train_dataset=rows).train()\n",
        "stack expects each tensor to be equal size, but got [9] at entry 0 and [19] at entry 1",
    ),
    "ragged rows beside a tokenizer that pads": (HEAD + ALIGNED + TRAINER, ROWS),
    "a decoder whose labels are another text": (
        CAUSAL
        + "rows = rows.map(lambda row: {**tokenizer(row['a']), 'labels': tokenizer(text_target=row['b'])['input_ids']})\n"
        + "transformers.Trainer(model=model, train_dataset=rows, processing_class=tokenizer).train()\n",
        LABELS,
    ),
    "a decoder whose inputs are padded as they are made": (
        CAUSAL
        + "rows = [{**tokenizer(t, padding='max_length'), 'labels': [-100] + t} for t in rows]\n"
        + "transformers.Trainer(model=model, train_dataset=rows, processing_class=tokenizer).train()\n",
        LABELS,
    ),
    "two models and a loader": (
        HEAD
        + "other = T5ForConditionalGeneration()\n".replace("T5", "transformers.T5")
        + "import transformers\n"
        + ALIGNED
        + "loader = DataLoader(rows, collate_fn=DataCollatorWithPadding(tokenizer))\n",
        LABELS,
    ),
    "a trainer of another library": (
        HEAD + "from trl import SFTTrainer\n" + ALIGNED + TRAINER.replace("Trainer(", "SFTTrainer("),
        LABELS,
    ),
}
REPLACED = (
    "from transformers import (AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification,"
)
IMPORTED = "from transformers import (AutoModelForTokenClassification, AutoTokenizer, DataCollatorForTokenClassification, DataCollatorWithPadding,"
RENAMED = "data_collator=DataCollatorForTokenClassification(tokenizer"
WRONG = {
    "a model that a setting chooses": (
        HEAD.replace("model = Auto", "MODELS = {'a': Other, 'b': Auto").replace(
            '.from_pretrained("x", num_labels=3)', "}\nmodel = MODELS[task](config)"
        )
        + ALIGNED
        + TRAINER.replace("rows,", "rows, data_collator=DataCollatorWithPadding(tokenizer),"),
        LABELS,
        [REPLACED, f"Trainer(model=model, train_dataset=rows, {RENAMED}), processing_class=tokenizer).train()"],
    ),
    "a trainer with a tokenizer": (
        HEAD + ALIGNED + TRAINER,
        LABELS,
        [IMPORTED, TRAINER.strip().replace("=tokenizer)", f"=tokenizer, {RENAMED}))")],
    ),
    "an older release's argument": (
        HEAD + ALIGNED + TRAINER.replace("processing_class", "tokenizer"),
        LABELS,
        [IMPORTED, TRAINER.strip().replace("processing_class=tokenizer)", f"tokenizer=tokenizer, {RENAMED}))")],
    ),
    "the collator that pads inputs": (
        HEAD
        + ALIGNED
        + TRAINER.replace("rows,", "rows, data_collator=DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8),"),
        LABELS,
        [REPLACED, TRAINER.strip().replace("rows,", f"rows, {RENAMED}, pad_to_multiple_of=8),")],
    ),
    "the collator of a registry": (
        HEAD.replace("Trainer,", "DataCollatorForTokenClassification, Trainer,")
        + ALIGNED
        + "COLLATORS = {'inputs': DataCollatorWithPadding, 'labels': DataCollatorForTokenClassification}\nCHOSEN = 'inputs'\n"
        + TRAINER.replace("rows,", "rows, data_collator=COLLATORS[CHOSEN](tokenizer),"),
        LABELS,
        ["CHOSEN = 'labels'"],
    ),
    "the collator by a name": (
        HEAD
        + ALIGNED
        + "pad = DataCollatorWithPadding(tokenizer)\n"
        + TRAINER.replace("rows,", "rows, data_collator=pad,"),
        LABELS,
        [REPLACED, "pad = DataCollatorForTokenClassification(tokenizer)"],
    ),
    "texts in a trainer without a tokenizer": (
        CLASSIFIED + "Trainer(model=model, train_dataset=rows).train()\n",
        ROWS,
        ["Trainer(model=model, train_dataset=rows, data_collator=DataCollatorWithPadding(tokenizer)).train()"],
    ),
    "texts in loaders": (
        CLASSIFIED + "train = DataLoader(rows, batch_size=8, shuffle=True)\nvalid = DataLoader(held, batch_size=8)\n",
        ROWS,
        [
            "train = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=DataCollatorWithPadding(tokenizer))",
            "valid = DataLoader(held, batch_size=8, collate_fn=DataCollatorWithPadding(tokenizer))",
        ],
    ),
    "no tokenizer given to the trainer": (
        HEAD + ALIGNED + "Trainer(model=model, train_dataset=rows).train()\n",
        ROWS,
        [IMPORTED, f"Trainer(model=model, train_dataset=rows, {RENAMED})).train()"],
    ),
    "the collator that pads nothing": (
        HEAD + ALIGNED + TRAINER.replace("rows,", "rows, data_collator=default_data_collator,"),
        ROWS,
        [
            "Trainer, TrainingArguments, DataCollatorForTokenClassification)",
            TRAINER.strip().replace("rows,", f"rows, {RENAMED}),"),
        ],
    ),
    "a loss of one's own that leaves out -100": (
        _own("F.cross_entropy(out.logits.transpose(1, 2), labels)"),
        LABELS,
        [IMPORTED, OWN_TRAINER.strip().replace("=tokenizer)", f"=tokenizer, {RENAMED}))")],
    ),
    "an encoder with a decoder": (
        SEQ2SEQ + "Seq2SeqTrainer(model=model, train_dataset=rows, processing_class=tokenizer).train()\n",
        LABELS,
        [
            "from transformers import DataCollatorForSeq2Seq, T5ForConditionalGeneration, Seq2SeqTrainer, T5TokenizerFast",
            "Seq2SeqTrainer(model=model, train_dataset=rows, processing_class=tokenizer, "
            "data_collator=DataCollatorForSeq2Seq(tokenizer, model=model)).train()",
        ],
    ),
    "a decoder whose labels are its tokens": (
        CAUSAL
        + "rows = rows.map(lambda row: {'input_ids': tokenizer(row['a'])['input_ids'], 'labels': tokenizer(row['a'])['input_ids']})\n"
        + "transformers.Trainer(model=model, train_dataset=rows, processing_class=tokenizer).train()\n",
        LABELS,
        [
            "transformers.Trainer(model=model, train_dataset=rows, processing_class=tokenizer, "
            "data_collator=transformers.DataCollatorForSeq2Seq(tokenizer)).train()"
        ],
    ),
    "the loaders of a loop of one's own": (
        HEAD
        + ALIGNED
        + "train = DataLoader(rows, collate_fn=DataCollatorWithPadding(tokenizer))\n"
        + "valid = DataLoader(held, collate_fn=DataCollatorWithPadding(tokenizer))\n",
        LABELS,
        [
            REPLACED,
            "train = DataLoader(rows, collate_fn=DataCollatorForTokenClassification(tokenizer))",
            "valid = DataLoader(held, collate_fn=DataCollatorForTokenClassification(tokenizer))",
        ],
    ),
    "a decoder whose prompt is left out of the labels": (
        CAUSAL
        + "from torch.utils.data import DataLoader\n"
        + "rows = [{'input_ids': tokenizer(p)['input_ids'] + a, 'labels': [-100] * len(p) + a} for p, a in rows]\n"
        + PAD.replace("RETURN", 'padding=True, return_tensors="pt"'),
        LABELS,
        ["return transformers.DataCollatorForSeq2Seq(tokenizer, padding=True)(rows)"],
    ),
    "a collate function that calls pad": (
        HEAD + ALIGNED + PAD.replace("RETURN", 'padding="longest", return_tensors="pt"'),
        LABELS,
        [IMPORTED, 'return DataCollatorForTokenClassification(tokenizer, padding="longest")(rows)'],
    ),
}


def test_words_that_are_one_token_each(tmp_path: pathlib.Path) -> None:
    """The program's own tokenizer splits no word and adds none: a label of each word is one of each token."""
    after = rewritten(tmp_path, "pad_in_collator", WHOLE + WORDS + TRAINER, message=LABELS)
    assert "data_collator=DataCollatorForTokenClassification(tokenizer)" in after


@pytest.mark.parametrize(("source", "message"), RIGHT.values(), ids=RIGHT)
def test_right_programs_stay(tmp_path, source: str, message: str) -> None:
    """Where the labels are no row of the model's tokens, or their padding would count, nothing is proposed."""
    assert rewritten(tmp_path, "pad_in_collator", source, message=message) == source


@pytest.mark.parametrize(("source", "message", "wanted"), WRONG.values(), ids=WRONG)
def test_faults_are_cured(tmp_path, source: str, message: str, wanted: list[str]) -> None:
    """The call gets its collator with the import; a second time nothing is left to do."""
    at = "tokenizer.pad(" if "tokenizer.pad(" in source else None
    after = rewritten(tmp_path, "pad_in_collator", source, at, message=message)
    assert changed_lines(source, after) == wanted
    assert rewritten(tmp_path, "pad_in_collator", after, message=message) == after


def test_what_a_collator_of_torch_refuses(tmp_path: pathlib.Path) -> None:
    """It says of tensors what many a line of a program says too: only where it stood in the collator is it known whose they are."""
    text = CLASSIFIED + "for batch in DataLoader(rows.with_format('torch'), batch_size=8):\n    pass\n"
    said = "stack expects each tensor to be equal size, but got [9] at entry 0 and [19] at entry 1"
    program = write(tmp_path, {"train.py": text})
    at = {
        str(tmp_path / "train.py"): line_of(text, "for batch"),
        "/site-packages/torch/utils/data/_utils/collate.py": 271,
    }
    (proposal,) = find_codemod("pad_in_collator")(Context(program=program, incident=failed(at, message=said)))
    assert changed_lines(text, splice(text, proposal.edits)) == [
        "for batch in DataLoader(rows.with_format('torch'), batch_size=8, collate_fn=DataCollatorWithPadding(tokenizer)):"
    ]
