"""Routes about configs: what there is to train, every value of it, and what a change does."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.routing import Route

from gymnast.config.load import resolve
from gymnast.service.config_keys import config_keys
from gymnast.service.configs import card_of, list_configs
from gymnast.service.envs import list_envs
from gymnast.studio.answers import answer, change
from gymnast.studio.processes import overrides_in, reference_in


def routes() -> list[Route]:
    """All of them."""

    def every(request: Request) -> Any:
        return {"configs": list_configs(), "envs": list_envs()}

    def keys(request: Request) -> Any:
        return config_keys()

    def checked(request: Request, body: dict[str, Any]) -> Any:
        # Without defaults for envs that have no file: those need the env itself, which only a training makes.
        return card_of(resolve(reference_in(body), overrides_in(body)))

    return [
        Route("/api/configs", answer(every)),
        Route("/api/config-keys", answer(keys)),
        Route("/api/config", change(checked), methods=["POST"]),
    ]
