"""What the interface remembers: the theme, and how each project's program is started. Losing it costs nothing."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

MAX_COMMANDS = 200


def settings_file() -> str:
    """Where the settings lie: in the folder that this system has for a user's configuration."""
    from platformdirs import user_config_dir

    return os.path.join(user_config_dir("gradfix", appauthor=False), "interface.json")


def read_settings() -> dict[str, Any]:
    """What was remembered; {} where nothing was, or it cannot be read."""
    try:
        with open(settings_file(), encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(name: str, value: object) -> None:
    """Remember one setting; where nothing can be written it is not remembered."""
    settings = {**read_settings(), name: value}
    path = settings_file()
    with suppress(OSError):
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        temporary = f"{path}.{os.getpid()}"
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            json.dump(settings, file, indent=1)
        os.replace(temporary, path)


def remembered_command(root: str) -> str:
    """How the program of a project was last started from the interface; "" where it never was."""
    commands = read_settings().get("commands")
    found = commands.get(root, "") if isinstance(commands, dict) else ""
    return found if isinstance(found, str) else ""


def remember_command(root: str, command: str) -> None:
    """Remember how the program of a project is started; the oldest projects are forgotten."""
    known = read_settings().get("commands")
    commands = {**(known if isinstance(known, dict) else {})}
    commands.pop(root, None)
    commands[root] = command
    remember("commands", dict(list(commands.items())[-MAX_COMMANDS:]))
