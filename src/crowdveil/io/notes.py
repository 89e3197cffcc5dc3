"""Notes of reading data: assumptions that the user should know, and counts of dropped rows."""

from __future__ import annotations

from dataclasses import dataclass, field

from crowdveil.errors import Naming, as_command_line, counted, render


@dataclass
class ReadNotes:
    """Notes of readers, shown on the command line and kept in the manifest. They hold no value of the data."""

    texts: list[str] = field(default_factory=list)
    """One sentence for each assumption, with references to options."""
    dropped: dict[str, int] = field(default_factory=dict)
    """Rows dropped on request (`--drop-invalid`), by reason."""

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

    def sentences(self, naming: Naming = as_command_line) -> list[str]:
        """Return all sentences, with parameters named as `naming` says, those about dropped rows last."""
        messages = [render(text, naming) for text in self.texts]
        return [*messages, *(f"dropped {counted(n, 'row')} that {reason}." for reason, n in self.dropped.items())]
