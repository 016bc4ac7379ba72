"""Every format shows the same report; what users wrote is shown and never obeyed."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from explainer.cli.schema import schema_of
from explainer.model.incident import CAUGHT, Fact
from explainer.model.report import Report
from explainer.render.github import render_github
from explainer.render.html import render_html, render_page
from explainer.render.json import render_json, to_plain
from explainer.render.markdown import code_block, code_span, render_markdown
from explainer.render.mask import mask_text
from explainer.render.sarif import render_sarif
from explainer.render.terminal import Layout, render_terminal
from explainer.render.visible import visible
from explainer.render.wrap import columns, wrap
from explainer.workflow import explain_incident, read_incidents
from tests.match.rules import catalog

HOSTILE = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script> `x` ``` | [a](javascript:b) ::error::x %0A \u202e"
LOG = (
    'Traceback (most recent call last):\n  File "/p/<b>train.py", line 3, in f\n    x += "\x1b]0;t\x07<img src=x>" # `tick`\n'
    f"    ^^^^\nRuntimeError: modified by an inplace operation, which is output 0 of ReluBackward0 {HOSTILE}\n"
)
ROWS = "{'loss': 1.0, 'grad_norm': nan}\n{'loss': inf, 'grad_norm': 0.5}\n"


def report(text: str = LOG) -> Report:
    return explain_incident(read_incidents(text)[0], None, catalog())


def shown() -> dict[str, str]:
    one = report()
    return {
        "terminal": render_terminal(one, Layout(is_verbose=True)),
        "markdown": render_markdown(one),
        "html": render_page([one]),
        "sarif": render_sarif([one], "0.1.0"),
        "github": render_github([one]),
        "json": render_json(one),
    }


@pytest.mark.parametrize("name", shown())
def test_no_control_sequence_gets_out(name: str) -> None:
    """No escape, bell or override of the input reaches the output."""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown()[name])


@pytest.mark.parametrize("name", shown())
def test_the_cause_is_in_every_format(name: str) -> None:
    """Each format names the cause."""
    assert "a/activation" in shown()[name].replace("\\/", "/")


@pytest.mark.parametrize("render", [lambda one: render_terminal(one, Layout()), render_markdown, render_html])
def test_what_a_program_caught(render) -> None:
    """A run that ended for another reason, or well, has no traceback of it: the report says that it was caught."""
    told = report()
    said = "the program caught this 8 times in 0 steps, and left these batches out"
    facts = (*told.incident.facts, Fact(name=CAUGHT, value=said))
    assert said not in " ".join(render(told).split())
    assert said in " ".join(render(replace(told, incident=replace(told.incident, facts=facts))).split())


def test_html_is_not_obeyed() -> None:
    """Markup of the input is text in the page."""
    tags: list[str] = []

    class Collector(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.append(tag)

    Collector().feed(render_html(report()))
    assert not {"script", "img", "b>train.py"} & set(tags)
    assert "&lt;script&gt;" in render_html(report())


def test_html_marks_the_expression() -> None:
    """The guilty columns are marked."""
    assert "<mark>x += </mark>" not in render_html(report())
    assert re.search(r"<mark>x \+=?</mark>|<mark>x \+=?", render_html(report()))


@given(st.text(max_size=80))
@settings(max_examples=200, deadline=None)
def test_markdown_code_cannot_be_left(text: str) -> None:
    """A code span or block ends where we end it."""
    span = code_span(text)
    ticks = re.match(r"`+", span)
    if ticks:
        assert not re.search(rf"(?<!`){ticks[0]}(?!`)", span[len(ticks[0]) : -len(ticks[0])])
    block = code_block(text)
    assert all(block[0].rstrip("text") not in line for line in block[1:-1])


def test_github_annotations_are_one_line() -> None:
    """A line feed of the input cannot begin another command."""
    assert render_github([report()]).count("\n") == 1


@pytest.mark.parametrize(
    "text", [LOG, ROWS, "nothing\n", "RuntimeError: unheard of\n"], ids=["finding", "metrics", "nothing", "unknown"]
)
def test_json_meets_its_schema(text: str) -> None:
    """The JSON of a report validates against the published schema, and reads back as the same report."""
    one = report(text)
    data = json.loads(render_json(one), parse_constant=lambda name: pytest.fail(name))
    schema = schema_of("report")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(data)
    again = TypeAdapter(Report).validate_json(render_json(one))
    assert to_plain(again) == to_plain(one)


def test_json_keeps_the_contract() -> None:
    """The keys that other programs rely on are there."""
    data = to_plain(report())
    assert data["schema"] == "gradfix.report/1"
    assert {"exceptions", "forward_frames", "warnings", "metrics", "rank"} <= set(data["incident"])
    assert {"file", "line", "function", "code", "library"} <= set(data["incident"]["exceptions"][0]["frames"][0])
    finding = data["findings"][0]
    assert {"cause", "title", "confidence", "score", "evidence", "culprits", "fixes"} <= set(finding)
    assert {"id", "reads", "says", "weight", "file", "line"} <= set(finding["evidence"][0])
    assert "unknown" in data and "environment" in data


def test_sarif_has_what_hosts_ask_for() -> None:
    """A result has a rule, a level, a message and a place."""
    run = json.loads(render_sarif([report()], "0.1.0"))["runs"][0]
    (result,) = run["results"]
    assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3


LINKED = {
    "markdown": (lambda one, own: render_markdown(one, unpublished=own), "[`a/activation`]({})"),
    "html": (lambda one, own: render_html(one, unpublished=own), '<a href="{}">'),
    "sarif": (lambda one, own: render_sarif([one], "0.1.0", own), '"helpUri": "{}"'),
    "github": (lambda one, own: render_github([one], own), "%0Amore: {}"),
}


@pytest.mark.parametrize(("render", "shown"), LINKED.values(), ids=LINKED.keys())
def test_a_report_links_to_the_page_of_its_cause(render, shown: str) -> None:
    """A cause of gradfix has a link to its page; one of a user's own rules has none."""
    link = "https://gradfix.readthedocs.io/causes/a/activation/"
    assert shown.format(link) in render(report(), ())
    assert link not in render(report(), {"a/activation"})


@pytest.mark.parametrize("size", [40, 80, 110])
def test_lines_fit(size: int) -> None:
    """No line of the card is wider than asked, but for paths."""
    text = render_terminal(report(), Layout(width=size, is_verbose=True))
    assert [line for line in text.splitlines() if columns(line) > size and "train.py" not in line] == []


def test_colour_only_where_asked() -> None:
    """Without colour there is no escape; with it the text is the same."""
    plain, coloured = (render_terminal(report(), Layout(is_coloured=one)) for one in (False, True))
    assert "\x1b" not in plain
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


@pytest.mark.parametrize(
    ("text", "size", "lines"),
    [("a b", 8, ["a b"]), ("aaaa bbbb cc", 9, ["aaaa bbbb", "cc"]), ("a\nb", 9, ["a", "b"]), ("日本語の長い文章です", 8, ["日本語の", "長い文章", "です"]),
     ("abcdefghijkl", 8, ["abcdefgh", "ijkl"])],
)  # fmt: skip
def test_wrap(text: str, size: int, lines: list[str]) -> None:
    """Wrapping counts columns, not characters."""
    assert wrap(text, size) == lines


KEPT = {
    "a token count": "tokens: 12345678901234567890",
    "the pad token": "tokenizer.pad_token = tokenizer.eos_token",
    "token ids": "pad_token_id=50256, bos_token_id=50257",
    "a metric": "tokens/s 12000",
    "a parameter": "key_padding_mask = torch.zeros(3, 4)",
    "a long name": "past_key_values=transformers.cache_utils.DynamicCache",
    "an address": "https://pytorch.org/docs/stable/notes/autograd.html",
    "a state dict key": "base_model.model.layers.0.self_attn.k_proj.lora_A.default.weight",
}
MASKED = {
    "hugging face": ("login hf_AbCdEfGhIjKlMnOpQrStUv done", "hf_AbC"),
    "openai": ("OPENAI_API_KEY=sk-proj-abcdefghij1234567890", "abcdefghij"),
    "github": ("git clone https://ghp_abcdefghijklmnopqrstuvwxyz0123456789@github.com/a/b", "ghp_abc"),
    "aws": ("AKIAIOSFODNN7EXAMPLE in the log", "IOSFODNN"),
    "wandb": ("WANDB_API_KEY=0123456789abcdef0123456789abcdef01234567", "89abcdef"),
    "a password": ("password: hunter22", "hunter22"),
    "a database": ("postgres://me:s3cret@db:5432/x", "s3cret"),
    "a bearer": ("Authorization: Bearer abc123def456ghi789jkl", "abc123def"),
    "a jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abc", "eyJzdWIi"),
    "a key block": ("-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "MIIEpA"),
    "a signed address": ("https://s3/x?X-Amz-Signature=0123456789abcdef0123456789abcdef", "89abcdef"),
    "slack": ("xoxb-123456789012-abcdefghijkl", "abcdefghijkl"),
}


@pytest.mark.parametrize("text", KEPT.values(), ids=KEPT.keys())
def test_not_masked(text: str) -> None:
    """What training logs are full of is no secret."""
    assert mask_text(text) == text


@pytest.mark.parametrize(("text", "secret"), MASKED.values(), ids=MASKED.keys())
def test_masked(text: str, secret: str) -> None:
    """A secret does not get out."""
    assert secret not in mask_text(text)


def test_masked_everywhere() -> None:
    """Messages, source lines, warnings, facts and paths are masked alike."""
    from explainer.render.mask import mask_secrets

    secret = "hf_AbCdEfGhIjKlMnOpQrStUv"
    text = f"/p/{secret}/a.py:3: UserWarning: {secret}\n" + LOG.replace("train.py", secret).replace(
        "ReluBackward0", f"Relu {secret}"
    )
    assert secret not in render_json(mask_secrets(report(text)))


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_visible_is_printable(text: str) -> None:
    """Whatever comes in, no control character comes out but tab and line feed."""
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", visible(text))
