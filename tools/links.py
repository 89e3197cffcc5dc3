"""Check the links of all pages without a network: files and headings exist, and pictures have alt text."""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Return all pages of the repository."""
    return [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]


def without_code(text: str) -> str:
    """Return a page without blocks of code, and without code between backticks."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S))


def anchors(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    plain = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} (.+)$", plain, flags=re.M):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", title).strip().replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def problems(page: Path) -> list[str]:
    """Return what is wrong with the links of a page."""
    found = []
    for picture, text, target in _LINK.findall(without_code(page.read_text())):
        path, _, anchor = target.partition("#")
        if picture and len(text.split()) < 3:
            found.append(f"{target}: the picture has no description in its alt text")
        if re.match(r"[a-z]+:", target):
            continue
        file = (page.parent / path).resolve() if path else page
        if not file.exists():
            found.append(f"{target}: there is no such file")
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            found.append(f"{target}: there is no such heading")
    return found


def main() -> int:
    """Print every broken link; fail if there is one."""
    broken = [f"{page.relative_to(ROOT).as_posix()}: {problem}" for page in pages() for problem in problems(page)]
    sys.stdout.write("".join(f"{line}\n" for line in broken) or f"links of {len(pages())} pages lead somewhere\n")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
