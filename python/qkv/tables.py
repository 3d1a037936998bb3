"""Rows with names: lists of dicts, which pandas.DataFrame takes as they are."""

from __future__ import annotations

import html
from typing import Any, Iterable, NamedTuple


class Estimate(NamedTuple):
    """A mean over texts with its 95 % interval."""

    mean: float
    low: float
    high: float
    n: int
    texts: int

    def __str__(self) -> str:
        return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"

    def __format__(self, spec: str) -> str:
        return format(self.mean, spec) if spec else str(self)


def flat(name: str, estimate: Estimate) -> dict[str, float]:
    """An estimate as three columns of a table."""
    return {name: estimate.mean, f"{name}_low": estimate.low, f"{name}_high": estimate.high}


class Table(list):
    """A list of dicts that all have the same keys.

    >>> rows = Table([{"head": "L0H1", "score": 0.5}, {"head": "L0H2", "score": 0.25}])
    >>> rows[0]["head"], len(rows)
    ('L0H1', 2)
    >>> rows.columns()["score"]
    [0.5, 0.25]
    >>> print(rows)
    head  score
    L0H1    0.5
    L0H2   0.25
    """

    def __init__(self, rows: Iterable[dict[str, Any]] = ()) -> None:
        super().__init__(rows)

    def names(self) -> list[str]:
        return list(self[0]) if self else []

    def columns(self) -> dict[str, list[Any]]:
        """The table by columns: a dict of lists."""
        return {name: [row[name] for row in self] for name in self.names()}

    def where(self, **wanted: Any) -> "Table":
        """The rows with these values.

        >>> Table([{"a": 1}, {"a": 2}]).where(a=2)[0]
        {'a': 2}
        """
        return Table(row for row in self if all(row[name] == value for name, value in wanted.items()))

    def __str__(self) -> str:
        names = self.names()
        cells = [names] + [[_shown(row[name]) for name in names] for row in self]
        numbers = [bool(self) and isinstance(self[0][name], (int, float)) for name in names]
        widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
        lines = []
        for line in cells:
            parts = [c.rjust(w) if n else c.ljust(w) for c, w, n in zip(line, widths, numbers)]
            lines.append("  ".join(parts).rstrip())
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        names = self.names()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in names) + "</tr>" for row in self
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _shown(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
