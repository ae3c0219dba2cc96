"""`python -m gymnast` and the `gymnast` command."""

from __future__ import annotations

from gymnast.cli import main

if __name__ == "__main__":
    main()
