"""Arrays that can be read and not changed, and say what to do instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import InputError

_CHANGING = ("fill", "sort", "partition", "put", "itemset", "byteswap", "resize", "setfield")


class ReadOnly(np.ndarray):
    """A view that cannot be written to: whoever tries is told what to do. What is computed from it are plain arrays.

    >>> seen = read_only(np.zeros(3), "change a copy")
    >>> (seen + 1).sum()
    3.0
    >>> try:
    ...     seen += 1
    ... except InputError as error:
    ...     print(error.hint)
    change a copy
    """

    _hint = "change a copy of it: array.copy()"

    def __array_finalize__(self, of: Any) -> None:
        self._hint = getattr(of, "_hint", ReadOnly._hint)

    def _refuse(self, error: ValueError) -> None:
        if "read-only" in str(error) or "WRITEABLE" in str(error):
            raise InputError("this array can be read and not changed", self._hint) from None

    def __setitem__(self, key: Any, value: Any) -> None:
        try:
            super().__setitem__(key, value)
        except ValueError as error:
            self._refuse(error)
            raise

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: tuple[Any, ...] = (), **how: Any) -> Any:
        if out:
            how["out"] = tuple(_plain(one) for one in out)
        try:
            made = getattr(ufunc, method)(*[_plain(one) for one in inputs], **how)
        except ValueError as error:
            self._refuse(error)
            raise
        return out[0] if len(out) == 1 else out or made

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        try:
            return super().__array_function__(function, types, args, kwargs)
        except ValueError as error:
            self._refuse(error)
            raise

    def copy(self, order: Any = "C") -> Any:
        return np.array(self, order=order)


def _changing(name: str) -> Any:
    def call(self: ReadOnly, *args: Any, **kwargs: Any) -> Any:
        try:
            return getattr(np.ndarray, name)(self, *args, **kwargs)
        except ValueError as error:
            self._refuse(error)
            raise

    call.__name__, call.__doc__ = name, f"As of any array; an InputError where it would change what can only be read: {name}."
    return call


for _name in _CHANGING:
    if hasattr(np.ndarray, _name):
        setattr(ReadOnly, _name, _changing(_name))


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, ReadOnly) else value


def read_only(array: Any, hint: str) -> Any:
    """A view of the array that cannot be written to; hint says what to do instead."""
    view = array.view(ReadOnly)
    view.flags.writeable = False
    view._hint = hint
    return view
