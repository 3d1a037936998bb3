"""What can go wrong. Every error says what, and `hint` says what to do."""

from __future__ import annotations


class Error(Exception):
    """Whatever the library reports.

    >>> import qkv
    >>> try:
    ...     qkv.Model("no-such-model")
    ... except qkv.Error as error:
    ...     print(error.message)
    there is no such file or folder and no built-in model: 'no-such-model'
    """

    def __init__(self, message: str, hint: str = "", where: str = "") -> None:
        super().__init__(message, hint, where)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        return self.message + (f"\n  hint: {self.hint}" if self.hint else "")


class InputError(Error, ValueError):
    """What was given is wrong: a value, a shape, a name, a file."""


class ClosedError(Error, RuntimeError):
    """A model was asked for something after close()."""


class BusyError(Error, RuntimeError):
    """In use by another thread where only one may, or by this one, from within a function that a pass calls."""


class InternalError(Error, RuntimeError):
    """A mistake of qkv itself: please report it with `where`."""
