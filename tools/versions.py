"""Print constraints for pip: the lowest declared versions (`lowest`), or the installed ones of what is declared (`tested`).

Both start from pyproject.toml, the only place that declares dependencies.
"""

from __future__ import annotations

import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"
_DECLARED = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<lowest>[0-9.]+)")


def declared(without: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the lowest declared version by name, of all dependencies and of extras but those `without`."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name not in without for line in lines]
    found = {}
    for line in (*project["dependencies"], *extras):
        if line.startswith(f"{project['name']}["):
            continue
        match = _DECLARED.match(line)
        if match is None:
            raise SystemExit(f"pyproject.toml: {line}: expected name>=version. Add the lowest version that works.")
        found[match["name"]] = match["lowest"]
    return dict(sorted(found.items()))


def lowest() -> list[str]:
    """Return a constraint for each dependency at its lowest declared version; tools of developers may be newer."""
    return [f"{name}=={least}" for name, least in declared(without=("test", "dev")).items()]


def tested() -> list[str]:
    """Return a constraint for each dependency at its installed version; one that is not installed is left out."""
    lines = []
    for name in declared():
        try:
            lines.append(f"{name}=={version(name)}")
        except PackageNotFoundError:
            sys.stderr.write(f"{name}: not installed, so left out\n")
    return lines


def main(arguments: list[str]) -> int:
    """Print the constraints of one kind."""
    kinds = {"lowest": lowest, "tested": tested}
    if len(arguments) != 1 or arguments[0] not in kinds:
        sys.stderr.write(f"Expected one of {', '.join(kinds)}.\n")
        return 2
    sys.stdout.write("\n".join(kinds[arguments[0]]()) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
