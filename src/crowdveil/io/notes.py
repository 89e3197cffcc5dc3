"""Notes of reading data: assumptions that the user should know, and counts of dropped rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from crowdveil.errors import (
    InputError,
    Naming,
    Text,
    as_command_line,
    as_field,
    counted,
    reason_for,
    render,
    rows_that,
)
from crowdveil.model.arrays import Mask

MANY_DROPPED = 0.05
"""Share of dropped rows above which a warning is shown."""


@dataclass
class ReadNotes:
    """Notes of readers, shown on the command line and kept in the manifest. They hold no value of the data."""

    texts: list[str | Text] = field(default_factory=list)
    """One sentence for each assumption."""
    numbers: dict[str, int] = field(default_factory=dict)
    """The number of values that each sentence is about."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows dropped on request (`--drop-invalid`), by reason."""
    rows: int = 0
    """Rows of the input, where they were counted."""

    def add(self, sentence: str | Text) -> None:
        """Add a sentence, once."""
        if sentence not in self.texts:
            self.texts.append(sentence)

    def number(self, sentence: str, n: int) -> None:
        """Add a sentence about a number of values, which is published rounded."""
        if n:
            self.numbers[sentence] = n

    @property
    def messages(self) -> list[str]:
        """Return the sentences without numbers for the manifest, with names of parameters, not of options."""
        return [render(text, as_field) for text in self.texts]

    def published(self, k: int) -> dict[str, Any]:
        """Return the notes for the manifest. Numbers are rounded down to multiples of k, since an exact one may show a person."""
        dropped = sum(n - n % k for n in self.dropped.values())
        numbers = [f"{text}: {_rounded(n, k)}." for text, n in self.numbers.items()]
        return {
            "notes": [*self.messages, *numbers],
            "dropped": {reason: _rounded(n, k) for reason, n in self.dropped.items()},
            "dropped_percent": 100 * dropped // self.rows if self.rows and self.dropped else None,
        }

    def drop(self, reason: str, rows: int) -> None:
        """Count dropped rows."""
        if rows:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    @property
    def dropped_percent(self) -> int | None:
        """Return the share of dropped rows in whole percents; None where rows were not counted."""
        return min(round(100 * sum(self.dropped.values()) / self.rows), 100) if self.rows else None

    def warnings(self) -> list[str]:
        """Return warnings about the result, such as many dropped rows."""
        if not self.rows or sum(self.dropped.values()) <= MANY_DROPPED * self.rows:
            return []
        return [
            f"{self.dropped_percent} % of the rows were dropped; check the data and its options before you publish."
        ]

    def sentences(self, naming: Naming = as_command_line) -> list[str]:
        """Return all sentences, with parameters named as `naming` says: warnings first, those about dropped rows last."""
        messages = [*self.warnings(), *(render(text, naming) for text in self.texts)]
        messages += [f"{text}: {n:,}." for text, n in self.numbers.items()]
        return [
            *messages,
            *(f"dropped {counted(n, 'row')} that {reason_for(n, reason)}." for reason, n in self.dropped.items()),
        ]


def _rounded(n: int, k: int) -> str:
    """Return a number rounded down to a multiple of k, in words below k."""
    return f"{n - n % k:,}" if n >= k else f"fewer than {k:,}"


@dataclass
class Problems:
    """Unusable rows by their first reason: their count and the first row numbers."""

    count: dict[str, int] = field(default_factory=dict)
    first: dict[str, list[int]] = field(default_factory=dict)

    def add(self, reason: str, bad: Mask | None, start: int = 0) -> None:
        """Count the bad rows of a chunk that begins at row `start`."""
        if bad is not None and bad.any():
            rows = np.flatnonzero(bad)
            self.add_count(reason, len(rows), (rows[:5] + start + 1).tolist())

    def add_count(self, reason: str, n: int, rows: list[int]) -> None:
        """Count `n` rows; `rows` are the numbers of the first ones, from 1, where they are known."""
        self.count[reason] = self.count.get(reason, 0) + n
        self.first[reason] = (self.first.get(reason, []) + rows)[:5]

    def settle(
        self,
        name: str,
        drop_invalid: bool,
        notes: ReadNotes,
        remedy: Callable[[str], str | Text] = lambda reason: "Fix",
        dropped: str = "them",
    ) -> None:
        """Raise with the first reason, or count the rows as dropped; `remedy` is the text before "them" that says what to do."""
        for reason, n in self.count.items():
            if not drop_invalid:
                raise InputError(
                    name,
                    Text(
                        "{rows}. {remedy} them, or drop {dropped} with {drop_invalid}.",
                        rows=rows_that(self.first[reason], n, reason),
                        remedy=remedy(reason),
                        dropped=dropped,
                    ),
                )
            notes.drop(reason, n)
