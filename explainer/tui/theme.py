"""The four themes: dark, light, the terminal's own colours, high contrast."""

from __future__ import annotations

import os

from textual.theme import Theme

DARK, LIGHT, ANSI, CONTRAST = "dark", "light", "ansi", "high-contrast"

# What our own styles name, by the names that every theme has.
DEFAULTS = {
    "quiet": "text-muted",
    "added": "text-success",
    "added-back": "success-muted",
    "removed": "text-error",
    "removed-back": "error-muted",
    "guilty-back": "error-muted",
}

THEMES = (
    Theme(
        name=DARK,
        primary="#7cacf8",
        secondary="#5f86c4",
        accent="#f0a36b",
        warning="#e8bf6a",
        error="#f2808d",
        success="#86cf95",
        foreground="#d5d9e0",
        background="#14161b",
        surface="#1a1d23",
        panel="#22262e",
        variables={
            "quiet": "#8b93a1",
            "added": "#9bdca8",
            "added-back": "#1b2c22",
            "removed": "#f29aa4",
            "removed-back": "#33201f",
            "guilty-back": "#3a2225",
            "footer-key-foreground": "#f0a36b",
            "footer-background": "#1a1d23",
            "block-cursor-background": "#2c3f5e",
            "block-cursor-foreground": "#ffffff",
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": "#252b36",
            "block-cursor-blurred-foreground": "#d5d9e0",
            "border": "#3a4150",
            "scrollbar": "#3a4150",
            "scrollbar-hover": "#4a5366",
            "scrollbar-active": "#7cacf8",
            "scrollbar-background": "#14161b",
            "scrollbar-background-hover": "#14161b",
            "scrollbar-background-active": "#14161b",
            "scrollbar-corner-color": "#14161b",
            "border-blurred": "#2c323d",
        },
    ),
    Theme(
        name=LIGHT,
        dark=False,
        primary="#1c5fb8",
        secondary="#4b7fc4",
        accent="#b4530c",
        warning="#8f5f00",
        error="#b4233a",
        success="#1f7a3d",
        foreground="#25282e",
        background="#fbfaf8",
        surface="#f4f2ee",
        panel="#e9e6e0",
        variables={
            "quiet": "#696f7a",
            "added": "#17622f",
            "added-back": "#e0f2e4",
            "removed": "#98182d",
            "removed-back": "#fae3e4",
            "guilty-back": "#fbe0df",
            "footer-key-foreground": "#b4530c",
            "footer-background": "#efece6",
            "block-cursor-background": "#cfe0f7",
            "block-cursor-foreground": "#10131a",
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": "#e6e9ee",
            "block-cursor-blurred-foreground": "#25282e",
            "border": "#c5c0b6",
            "scrollbar": "#c5c0b6",
            "scrollbar-hover": "#aaa49a",
            "scrollbar-active": "#1c5fb8",
            "scrollbar-background": "#fbfaf8",
            "scrollbar-background-hover": "#fbfaf8",
            "scrollbar-background-active": "#fbfaf8",
            "scrollbar-corner-color": "#fbfaf8",
            "border-blurred": "#d8d4cb",
        },
    ),
    Theme(
        name=ANSI,
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_cyan",
        accent="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables={
            "ansi-background": "ansi_black",
            "ansi-foreground": "ansi_white",
            "quiet": "ansi_bright_black",
            "added": "ansi_green",
            "added-back": "ansi_default",
            "removed": "ansi_red",
            "removed-back": "ansi_default",
            "guilty-back": "ansi_default",
            "footer-key-foreground": "ansi_cyan",
            "block-cursor-foreground": "ansi_default",
            "block-cursor-background": "ansi_default",
            "block-cursor-text-style": "bold reverse",
            "block-cursor-blurred-foreground": "ansi_default",
            "block-cursor-blurred-background": "ansi_default",
            "block-cursor-blurred-text-style": "bold",
            "border": "ansi_bright_black",
            "border-blurred": "ansi_bright_black",
            "input-cursor-background": "ansi_white",
            "input-cursor-foreground": "ansi_black",
            "input-selection-background": "ansi_bright_blue",
            "input-selection-foreground": "ansi_black",
            "screen-selection-background": "ansi_bright_blue",
            "screen-selection-foreground": "ansi_black",
        },
    ),
    Theme(
        name=CONTRAST,
        primary="#ffff00",
        secondary="#00ffff",
        accent="#00ffff",
        warning="#ffd000",
        error="#ff7080",
        success="#00ff7f",
        foreground="#ffffff",
        background="#000000",
        surface="#000000",
        panel="#101010",
        text_alpha=1.0,
        variables={
            "quiet": "#d8d8d8",
            "added": "#00ff7f",
            "added-back": "#000000",
            "removed": "#ff9aa5",
            "removed-back": "#000000",
            "guilty-back": "#000000",
            "text-primary": "#ffff00",
            "text-accent": "#00ffff",
            "text-success": "#00ff7f",
            "text-warning": "#ffd000",
            "text-error": "#ff7080",
            "footer-key-foreground": "#ffff00",
            "footer-background": "#000000",
            "block-cursor-background": "#ffff00",
            "block-cursor-foreground": "#000000",
            "block-cursor-text-style": "bold",
            "block-cursor-blurred-background": "#404040",
            "block-cursor-blurred-foreground": "#ffffff",
            "border": "#ffffff",
            "scrollbar": "#ffffff",
            "scrollbar-background": "#000000",
            "scrollbar-background-hover": "#000000",
            "scrollbar-background-active": "#000000",
            "scrollbar-corner-color": "#000000",
            "border-blurred": "#a0a0a0",
        },
    ),
)
NAMES = tuple(one.name for one in THEMES)


def first_theme(remembered: object) -> str:
    """The theme to begin with: the remembered one, else light where the terminal says that its background is.

    With NO_COLOR it is the one that works without any.
    """
    if os.environ.get("NO_COLOR"):
        return ANSI
    if isinstance(remembered, str) and remembered in NAMES:
        return remembered
    # rxvt, Konsole and others set "foreground;background" by the numbers of the sixteen colours.
    is_light = os.environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15")
    return LIGHT if is_light else DARK


def next_theme(name: str) -> str:
    """The theme after this one."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else DARK
