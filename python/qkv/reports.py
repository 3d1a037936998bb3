"""What the results of looking share: arrays by name, a report, and its page."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from typing import Any, Union

from . import _core as native
from .stored import StoredLook, StoredPatch


class Reported(Mapping):
    """A mapping of names and arrays that has a report. In a notebook it shows the report's page. It can be pickled."""

    _core: Union[native.Looked, native.Patched, StoredLook, StoredPatch]
    _command: str  # whose report it is

    def json(self) -> str:
        """The report, as --json of the command prints it."""
        return self._core.json()

    def report(self) -> dict[str, Any]:
        """The same as a dict."""
        return json.loads(self._core.json())

    def html(self) -> str:
        """A page that opens offline, as --html of the command writes it."""
        return self._core.html()

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html(), quote=True)}" title="{self._command}"'
            ' style="width:100%;height:720px;border:1px solid #8884" sandbox="allow-scripts allow-downloads"></iframe>'
        )
