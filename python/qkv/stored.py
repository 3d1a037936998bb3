"""Reports without the library's objects behind them: what a pickled one becomes. They answer what those answer."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

import numpy as np

from . import _core as native
from .errors import InputError


class StoredLook:
    """Of a native.Looked: the numbers it showed, and its report."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def tokens(self) -> list[str]:
        return list(self._state["tokens"])

    def ids(self) -> list[int]:
        return list(self._state["ids"])

    def names(self) -> list[str]:
        return list(self._state["arrays"])

    def view(self, name: str) -> Any:
        return self._state["arrays"][name]

    def levels(self) -> int:
        return len(self._state["ladder"])

    def ladder(self, level: int) -> Any:
        if not 0 <= level < self.levels():
            raise InputError(f"level {level} of {self.levels()}", "level 0 is the embedding, the last one the output")
        return self._state["ladder"][level]

    def json(self) -> str:
        return self._state["json"]

    def html(self) -> str:
        return native.report_html(self.json())

    def save_npz(self, path: str) -> None:
        report = json.loads(self.json())
        arrays = {}
        for name in ("tokens", "source"):
            if name in report:
                arrays[name] = np.array([token["text"].encode() for token in report[name]])  # as the library writes it
                arrays[f"{name}.ids"] = np.array([token["id"] for token in report[name]], np.int32)
        arrays.update(self._state["arrays"])
        folder, name = os.path.split(os.path.abspath(path))
        with tempfile.NamedTemporaryFile(dir=folder, prefix=name, delete=False) as file:  # whole, or not at all
            try:
                np.savez(file, **arrays)
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise


def state_of_look(core: Any) -> dict[str, Any]:
    return {
        "tokens": core.tokens(),
        "ids": core.ids(),
        "arrays": {name: np.array(core.view(name)) for name in core.names()},
        "ladder": [core.ladder(level) for level in range(core.levels())],
        "json": core.json(),
    }


class StoredPatch:
    """Of a native.Patched."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state
        for name in PATCHED:
            setattr(self, name, state[name])

    def maps(self) -> Any:
        return self._state["maps"]

    def json(self) -> str:
        return self._state["json"]

    def html(self) -> str:
        return native.report_html(self.json())


PATCHED = ("clean_ids", "corrupt_ids", "token", "answer", "wrong", "clean", "corrupt")


def state_of_patch(core: Any) -> dict[str, Any]:
    return {**{name: getattr(core, name) for name in PATCHED}, "maps": core.maps(), "json": core.json()}
