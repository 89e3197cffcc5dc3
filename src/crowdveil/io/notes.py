"""Notes of reading data: assumptions that the user should know, and counts of dropped rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from crowdveil.errors import Naming, as_command_line, counted, render

MANY_DROPPED = 0.05
"""Share of dropped rows beyond which they are a warning."""


@dataclass
class ReadNotes:
    """Notes of readers, shown on the command line and kept in the manifest. They hold no value of the data."""

    texts: list[str] = field(default_factory=list)
    """One sentence for each assumption, with references to options."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows dropped on request (`--drop-invalid`), by reason."""
    rows: int = 0
    """Rows of the input, where they were counted."""

    def add(self, sentence: str) -> None:
        """Add a sentence, once."""
        if sentence not in self.texts:
            self.texts.append(sentence)

    @property
    def messages(self) -> list[str]:
        """Return the sentences as the command line and the manifest have them."""
        return [render(text, as_command_line) for text in self.texts]

    def drop(self, reason: str, rows: int) -> None:
        """Count dropped rows."""
        if rows:
            reason = render(reason, as_command_line)
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    @property
    def dropped_percent(self) -> int | None:
        """Return the share of dropped rows in whole percents; None where rows were not counted."""
        return min(round(100 * sum(self.dropped.values()) / self.rows), 100) if self.rows else None

    def warnings(self) -> list[str]:
        """Return what may spoil the result: many dropped rows."""
        if not self.rows or sum(self.dropped.values()) <= MANY_DROPPED * self.rows:
            return []
        return [
            f"{self.dropped_percent} % of the rows were dropped; check the data and its options before you publish."
        ]

    def sentences(self, naming: Naming = as_command_line) -> list[str]:
        """Return all sentences, with parameters named as `naming` says: warnings first, those about dropped rows last."""
        messages = [*self.warnings(), *(render(text, naming) for text in self.texts)]
        return [*messages, *(f"dropped {counted(n, 'row')} that {reason}." for reason, n in self.dropped.items())]
