"""Notes of reading data: assumptions that the user should know, and counts of dropped rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from crowdveil.errors import counted


@dataclass
class ReadNotes:
    """Notes of readers, shown on the command line and kept in the manifest. They hold no value of the data."""

    messages: list[str] = field(default_factory=list)
    """One sentence for each assumption."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows dropped on request (`--drop-invalid`), by reason."""

    def add(self, sentence: str) -> None:
        """Add a sentence, once."""
        if sentence not in self.messages:
            self.messages.append(sentence)

    def drop(self, reason: str, rows: int) -> None:
        """Count dropped rows."""
        if rows:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    def sentences(self) -> list[str]:
        """Return all sentences, those about dropped rows last."""
        return [*self.messages, *(f"dropped {counted(n, 'row')} that {reason}." for reason, n in self.dropped.items())]
