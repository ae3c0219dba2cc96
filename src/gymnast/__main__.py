"""`python -m gymnast` and the `gymnast` command."""

from __future__ import annotations

import os
import sys

if __name__ == "__main__" and not sys.flags.safe_path and sys.path[0] == os.getcwd():  # noqa: PTH109 - nothing is imported yet
    # `-m` looks for modules in the current folder first, and a user's `socket.py` there is not Python's. Modules that a
    # config names are found there all the same.
    del sys.path[0]

from gymnast.cli.entry import main

if __name__ == "__main__":
    main()
