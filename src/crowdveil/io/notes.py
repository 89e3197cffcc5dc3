"""What happened while data was read: things the user should know, and rows that were left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from crowdveil.errors import counted


@dataclass
class ReadNotes:
    """Filled by readers; shown on the command line and kept in the manifest. Holds no value of the data."""

    said: list[str] = field(default_factory=list)
    """One sentence for each thing that was guessed or decided."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows left out at the user's wish (`--drop-invalid`), by reason."""

    def say(self, sentence: str) -> None:
        """Note something, once."""
        if sentence not in self.said:
            self.said.append(sentence)

    def drop(self, reason: str, rows: int) -> None:
        """Count rows that were left out."""
        if rows:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    def sentences(self) -> list[str]:
        """All of it, as it is told to people."""
        return [*self.said, *(f"left out {counted(n, 'row')} that {reason}." for reason, n in self.dropped.items())]
