"""`python -m gradfix`."""

from __future__ import annotations

import sys

from gradfix import find_explainer


def main() -> int:
    """Run the command line, once it is sure to be ours."""
    find_explainer()
    from explainer.cli.entry import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
