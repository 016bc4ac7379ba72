"""The pytest plugin as pytest loads it: two options, and nothing of gradfix's own imported unless one of them is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--gradfix` and the setting `gradfix`, both off by themselves."""
    group = parser.getgroup("gradfix")
    group.addoption("--gradfix", action="store_true", help="explain failed tests whose exception gradfix knows")
    parser.addini("gradfix", "explain failed tests whose exception gradfix knows", type="bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Take part where it was asked for."""
    if config.getoption("gradfix") or config.getini("gradfix"):
        from gradfix import find_explainer

        find_explainer()
        from explainer.integrations.testing import Explaining

        config.pluginmanager.register(Explaining(config), "gradfix-explaining")
