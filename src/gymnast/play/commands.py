"""What whoever plays can ask for besides the game's own actions, and with which keys."""

from __future__ import annotations

from collections.abc import Mapping

QUIT, HELP, PAUSE, STEP, RESTART = "quit", "help", "pause", "step", "restart"
TAKE_OVER, NEXT_MODE, FASTER, SLOWER = "take over", "next mode", "faster", "slower"
SAVE = "save"

KEYS: Mapping[str, str] = {
    "tab": TAKE_OVER,
    "m": NEXT_MODE,
    "p": PAUSE,
    "n": STEP,
    "+": FASTER,
    "=": FASTER,
    "-": SLOWER,
    "r": RESTART,
    "s": SAVE,
    "h": HELP,
    "f1": HELP,
    "q": QUIT,
    "escape": QUIT,
}
"""A key that the game uses is the game's: every command has another one, or can be done without."""

MEANING: Mapping[str, str] = {
    TAKE_OVER: "take over, hand back",
    NEXT_MODE: "next mode",
    PAUSE: "pause, go on",
    STEP: "a single step",
    FASTER: "faster",
    SLOWER: "slower",
    RESTART: "restart the episode",
    SAVE: "save the game, where the env can",
    HELP: "these keys",
    QUIT: "quit",
}

SPEEDS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Times the pace of the game."""


def keys_of(command: str, taken: Mapping[str, object]) -> list[str]:
    """The keys of a command that the game leaves free."""
    return [key for key, what in KEYS.items() if what == command and key not in taken]
