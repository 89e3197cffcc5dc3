"""Build the site of the docs with Sphinx: `python tools/site.py` writes build/site/html; a warning is an error.

The pages stay readable where the repository is browsed: links to files outside docs/, notebooks and the list of methods are
prepared for Sphinx in a copy.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "site"
TOP = ("ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
"""Pages of the repository's top folder that are pages of the site too."""


def stage(source: Path) -> None:
    """Write a copy of the docs that Sphinx can build."""
    for old in source.rglob("*.md"):
        old.unlink()
    shutil.copytree(ROOT / "docs", source, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "deploy", source / "deploy", dirs_exist_ok=True)
    for name in TOP:
        (source / name).write_text((ROOT / name).read_text().replace("](docs/", "]("))
    for page in source.rglob("*.md"):
        depth = len(page.relative_to(source).parts) - 1
        text = page.read_text()
        # One level up from docs/ is the top folder of the site.
        outside = "../" * (depth + 1)
        page.write_text(re.sub(rf"\]\({re.escape(outside)}(?!\.)", f"]({'../' * depth}", text))
    for notebook in source.rglob("*.ipynb"):
        notebook.with_suffix(".md").write_text(notebook_page(json.loads(notebook.read_text())))
        notebook.unlink()
    index = source / "notebooks" / "README.md"
    names = [path.stem for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))]
    index.write_text(index.read_text().replace(".ipynb)", ".md)") + _toctree(names))
    methods = source / "methods" / "README.md"
    names = [path.stem for path in sorted((ROOT / "docs" / "methods").glob("*.md")) if path.stem != "README"]
    methods.write_text(methods.read_text() + _toctree(names))


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as a page: code with the text that it printed."""
    lines: list[str] = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            lines.append(source)
            continue
        lines.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            text = "".join(output.get("text", output.get("data", {}).get("text/plain", [])))
            if text:
                lines.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(lines) + "\n"


def _toctree(names: list[str]) -> str:
    return "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def main() -> int:
    """Build the site; return Sphinx's exit code."""
    source = BUILD / "source"
    source.mkdir(parents=True, exist_ok=True)
    stage(source)
    command = [
        sys.executable, "-m", "sphinx", "-b", "html", "-W", "--keep-going", "-q", "-d", str(BUILD / "doctrees"), str(source),
        str(BUILD / "html"),
    ]  # fmt: skip
    done = subprocess.run(command, check=False).returncode
    if done == 0:
        sys.stdout.write(f"{(BUILD / 'html' / 'index.html').relative_to(ROOT)}: the site, with search, opens offline\n")
    return done


if __name__ == "__main__":
    sys.exit(main())
