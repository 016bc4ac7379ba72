"""The table of modules: a bar for each norm, one line for a long list of layers."""

from __future__ import annotations

from explainer.model.verification import ModuleHealth
from explainer.render.module import module_table


def module(name: str, norm: float | None, **counts: int) -> ModuleHealth:
    return ModuleHealth(name=name, norm=norm, **{"parameters": 2, "given": 2, "zero": 0, "bad": 0, **counts})


def table(*modules: ModuleHealth, width: int = 100, is_coloured: bool = False) -> list[str]:
    def paint(text: str, code: str) -> str:
        return f"<{code}>{text}</>" if is_coloured and code else text

    return list(module_table(modules, width=width, paint=paint))


def test_nothing_trained() -> None:
    """No modules, no table."""
    assert table() == []


def test_bars_are_logarithmic() -> None:
    """The largest norm fills the bar; a hundredth of it half; four decades below there is none."""
    shown = table(module("Net.a", 100.0), module("Net.b", 1.0), module("Net.c", 0.001))
    assert [line[37:] for line in shown[1:]] == ["  ████████████ 100", "  ██████       1", "               0.001"]


def test_layers_on_one_line() -> None:
    """A list of more than six layers is one line with a small bar each; what is not finite is a cross, none a dot."""
    layers = [module(f"Net.layers.{index}", 10.0 ** (index - 6)) for index in range(7)]
    shown = table(*layers, module("Net.layers.7", None, bad=1), module("Net.layers.8", None, given=0))
    assert shown[1:] == ["  Net.layers.0-8      18     16      0      1  ▁▁▁▃▅▆█×· 1e-06 … 1"]


def test_few_layers_have_lines_of_their_own() -> None:
    """Up to six."""
    assert len(table(*(module(f"Net.{index}", 1.0) for index in range(6)))) == 7


def test_what_is_wrong_is_coloured() -> None:
    """Missing and zero gradients are yellow, those not finite red; the rest is plain."""
    (_, line) = table(module("Net.a", None, given=1, zero=1, bad=1), is_coloured=True)
    assert line.split("  Net.a")[1] == "        2 <33>     1</> <33>     1</> <31>     1</>               not finite"


def test_long_names_keep_their_end() -> None:
    """The beginning is cut where the terminal is narrow."""
    assert table(module("Net.encoder.decoder.attention", 1.0), width=30)[1].startswith("  …r.attention  ")
