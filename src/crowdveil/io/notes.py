"""What happened while data was read: things the user should know, and rows that were left out."""

from __future__ import annotations

from dataclasses import dataclass, field

from crowdveil.errors import as_command_line, counted, render


@dataclass
class ReadNotes:
    """Filled by readers; shown on the command line and kept in the manifest. Holds no value of the data."""

    texts: list[str] = field(default_factory=list)
    """One sentence for each thing that was guessed or decided, with references to options."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows left out at the user's wish (`--drop-invalid`), by reason."""

    def say(self, sentence: str) -> None:
        """Note something, once."""
        if sentence not in self.texts:
            self.texts.append(sentence)

    @property
    def said(self) -> list[str]:
        """The sentences as the command line and the manifest have them."""
        return [render(text, as_command_line) for text in self.texts]

    def drop(self, reason: str, rows: int) -> None:
        """Count rows that were left out."""
        if rows:
            self.dropped[reason] = self.dropped.get(reason, 0) + rows

    def sentences(self) -> list[str]:
        """Return the sentences, and one for each reason why rows were left out."""
        return [*self.said, *(f"left out {counted(n, 'row')} that {reason}." for reason, n in self.dropped.items())]
