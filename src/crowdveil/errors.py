"""Every error that a user can cause.

    CrowdveilError
    ├── InputError          data that cannot be used: file, column, row            exit code 2
    ├── ParameterError      a parameter, an option or a run file that is wrong     exit code 2
    ├── OutputError         the place to write to: exists, not writable, full      exit code 2
    ├── MissingExtraError   an optional dependency is not installed                exit code 2
    └── GuaranteeViolatedError  a release does not keep what it guarantees               exit code 1

A message is one sentence: what was wanted, what was got, what to do. It names files, columns, parameters,
row numbers and counts, and never a value of the data.
"""

from __future__ import annotations

from collections.abc import Iterable

ROWS_NAMED = 5


class CrowdveilError(Exception):
    """The root of everything that is reported to a user in one sentence."""

    exit_code = 2


class InputError(CrowdveilError):
    """Data that cannot be used."""


class TimeStepError(InputError):
    """Data of one time step that cannot be used.

    Attributes
    ----------
    step, steps
        Its number from 1, and how many time steps there are.
    reason
        What is wrong with it.
    """

    def __init__(self, step: int, steps: int, reason: str) -> None:
        super().__init__(f"time step {step:,} of {steps:,}: {reason}")
        self.step, self.steps, self.reason = step, steps, reason


class ParameterError(CrowdveilError):
    """A parameter, an option or a run file that is wrong."""


class OutputError(CrowdveilError):
    """A place to write to that cannot be used."""


class MissingExtraError(CrowdveilError):
    """An optional dependency that the call needs is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package}: install it with pip install 'crowdveil[{extra}]'.")


class GuaranteeViolatedError(CrowdveilError):
    """A release does not keep what it guarantees; nothing was published."""

    exit_code = 1


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """`n` with its noun, as in "1 row" or "2,500 rows"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


_OF_ONE = {"have": "has", "are": "is", "name": "names", "repeat": "repeats"}


def rows_that(rows: Iterable[int], total: int, reason: str) -> str:
    """Rows with what is wrong with them, as in "1 row (row 2) has no time" for the reason "have no time"."""
    verb, _, rest = reason.partition(" ")
    return f"{rows_named(rows, total)} {_OF_ONE.get(verb, verb) if total == 1 else verb} {rest}"


def rows_named(rows: Iterable[int], total: int) -> str:
    """The first few row numbers of `total` bad rows, as in "3 rows (rows 2, 7 and 9)"."""
    first = [f"{r:,}" for _, r in zip(range(ROWS_NAMED), rows, strict=False)]
    if not first:
        return counted(total, "row")
    if total > len(first):
        return f"{counted(total, 'row')} (first: {', '.join(first)})"
    listed = first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
    return f"{counted(total, 'row')} ({'row' if total == 1 else 'rows'} {listed})"
