"""Puts the rule base into the wheel: the files of `knowledge/`, the validated bundle that `explain` loads, the manual page."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class KnowledgeHook(BuildHookInterface):  # type: ignore[type-arg]
    """Validates the rules while the wheel is built: a broken rule base cannot be shipped."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the bundle and the rule files; an editable install reads them where they lie."""
        if self.target_name != "wheel" or version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from explainer.catalog.bundle import write_bundle

            folder = os.path.join(self.root, "knowledge")
            self._scratch = tempfile.mkdtemp(prefix="gradfix-bundle-")
            target = os.path.join(self._scratch, "bundle.json")
            write_bundle(folder, target)
            from tools.man_page import man_page

            page = os.path.join(self._scratch, "gradfix.1")
            with open(page, "w", encoding="utf-8") as file:
                file.write(man_page())
        finally:
            sys.path.remove(self.root)
        build_data["shared_data"][page] = "share/man/man1/gradfix.1"
        build_data["force_include"][target] = "explainer/knowledge/.bundle.json"
        for place, _, names in os.walk(folder):
            for name in names:
                if name.endswith((".toml", ".md", ".py", ".txt")) and not name.startswith("."):
                    path = os.path.join(place, name)
                    inside = os.path.relpath(path, folder).replace(os.sep, "/")
                    build_data["force_include"][path] = f"explainer/knowledge/{inside}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove the scratch folder."""
        scratch = getattr(self, "_scratch", None)
        if scratch:
            import shutil

            shutil.rmtree(scratch, ignore_errors=True)
