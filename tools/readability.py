"""Print sentence lengths of every page: median, 90th percentile and longest, in words; `--check` fails where one is too long.

Code, tables, headings and generated pages of the reference are left out. A list item is a sentence of its own. With the path of
a page, its longest sentences are printed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MEDIAN, NINETIETH = 20, 32
"""Largest allowed median and 90th percentile, in words."""
AVOIDED = re.compile(
    r"\b(tell|tells|told|mend|mends|whoever|somebody|anew|besides?|withheld|promises?|stays? in the house|at hand|data base)\b",
    re.I,
)
"""Words that the glossary replaces."""
GENERATED = "<!-- Generated from the code"


def pages() -> list[Path]:
    """Return the pages that people read from top to bottom."""
    found = [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ARCHITECTURE.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ]
    return [page for page in found if not page.read_text().startswith(GENERATED)]


def prose(text: str) -> list[str]:
    """Return the paragraphs and list items of a page, without code, tables, headings and references."""
    text = text.split("\n## References")[0]
    text = re.sub(r"^```.*?^```$", "\n", text, flags=re.M | re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = re.sub(r"^( {4}|\s*\||#|!\[).*$", "\n", text, flags=re.M)
    text = re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def sentences(text: str) -> list[str]:
    """Return the sentences of a page; code between backticks is one word."""
    found = []
    for paragraph in prose(text):
        plain = re.sub(r"`[^`]*`", "code", paragraph)
        found += [s for s in re.split(r"(?<=[.!?])(?:\*\*|\*|\))?\s+(?=[\w\"(*`])", plain) if re.search(r"\w", s)]
    return found


def lengths(text: str) -> tuple[int, int, int]:
    """Return median, 90th percentile and largest number of words in a sentence."""
    words = sorted(len(re.findall(r"[\w’'-]+", s)) for s in sentences(text)) or [0]
    return words[(len(words) - 1) // 2], words[(len(words) - 1) * 9 // 10], words[-1]


def main(arguments: list[str]) -> int:
    """Print the table, or the longest sentences of the pages that are named."""
    named = [Path(a) for a in arguments if a != "--check"]
    for page in named:
        for sentence in sorted(sentences(page.read_text()), key=lambda s: -len(s.split()))[:15]:
            sys.stdout.write(f"{len(sentence.split()):4}  {sentence}\n")
    bad = 0
    for page in [] if named else pages():
        text = page.read_text()
        median, ninetieth, longest = lengths(text)
        avoided = sorted({word.lower() for part in prose(text) for word in AVOIDED.findall(part)})
        wrong = median > MEDIAN or ninetieth > NINETIETH or bool(avoided)
        bad += wrong
        mark = "!" if wrong else " "
        words = f"  avoid: {', '.join(avoided)}" if avoided else ""
        sys.stdout.write(f"{mark} {page.relative_to(ROOT).as_posix():44} {median:3} {ninetieth:4} {longest:4}{words}\n")
    return 1 if bad and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
