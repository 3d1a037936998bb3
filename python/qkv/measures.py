"""What is measured about texts and heads."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from .tables import Estimate, Table, flat


@dataclass(frozen=True)
class Score:
    """log p of every token that the text itself determines, in nats."""

    ids: list[int] = field(repr=False)
    log_p: Any = field(repr=False)  # an array: of ids[first], ids[first + 1], ...
    first: int = field(repr=False)
    total: float
    perplexity: float  # exp of the mean


@dataclass(frozen=True)
class CutEffect:
    """What cutting heads does, over many texts: loss before and after (nats per token), KL(p || p cut)."""

    heads: str
    before: Estimate
    after: Estimate
    delta: Estimate
    kl: Estimate
    same_guess: Estimate  # share of rows whose top guess stays

    def table(self) -> Table:
        names = ("before", "after", "delta", "kl", "same_guess")
        return Table({"what": name, **getattr(self, name)._asdict()} for name in names)

    def _repr_html_(self) -> str:
        return self.table()._repr_html_()


def cut_effect(heads: str, made: dict[str, Any]) -> CutEffect:
    return CutEffect(heads, **{name: Estimate(*value) for name, value in made.items()})


@dataclass(frozen=True)
class Attribution:
    """The parts of the difference of two logits, in the order of the pass."""

    token: int
    target: int
    against: int
    parts: Table = field(repr=False)
    sum: float
    difference: float
    linearised: bool = field(repr=False)

    def _repr_html_(self) -> str:
        return self.parts._repr_html_()


def attribution(made: dict[str, Any]) -> Attribution:
    parts = Table({"part": name, "kind": kind, "share": share} for name, kind, share in made.pop("parts"))
    return Attribution(parts=parts, **made)


def lens_table(layers: list[dict[str, Any]]) -> Table:
    rows = []
    for layer in layers:
        row: dict[str, Any] = {"level": layer.pop("name")}
        for name, value in layer.items():
            row.update(flat(name, Estimate(*value)))
        rows.append(row)
    return Table(rows)


def roles_table(heads: list[tuple[str, list[Any], dict[str, Any]]]) -> Table:
    """One row for each head: its first role, and every measure with its interval."""
    every = {name: None for _, _, measures in heads for name in measures}
    rows = []
    for head, roles, measures in heads:
        row: dict[str, Any] = {"head": head, "role": "", "roles": ", ".join(name for name, _, _ in roles)}
        nothing = Estimate(float("nan"), float("nan"), float("nan"), 0, 0)
        score, coverage = nothing, nothing
        if roles:
            row["role"] = roles[0][0]
            score, coverage = Estimate(*roles[0][1]), Estimate(*roles[0][2])
        row.update(flat("score", score))
        row.update(flat("coverage", coverage))
        for name in every:
            row.update(flat(name, Estimate(*measures[name]) if name in measures else nothing))
        rows.append(row)
    return Table(rows)
