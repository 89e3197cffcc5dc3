"""The TypeScript types of the page, generated from the models of answers: `python tools/page_types.py` writes them,
`--check` fails if they are stale.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic.json_schema import models_json_schema

from crowdveil.server.views import JobList, UploadView

TARGET = Path(__file__).parents[1] / "web" / "page" / "views.ts"
_HEAD = "// Generated from src/crowdveil/server/views.py by `make web`; change the models, not this file.\n"
_PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def types() -> str:
    """Return an interface for each model of an answer."""
    _, schema = models_json_schema([(JobList, "serialization"), (UploadView, "serialization")])
    return _HEAD + "".join(_interface(name, about) for name, about in sorted(schema["$defs"].items()))


def _interface(name: str, about: dict[str, Any]) -> str:
    required = set(about.get("required", ()))
    lines = []
    for field, of in about["properties"].items():
        comment = f"  /** {of['description']} */\n" if "description" in of else ""
        lines.append(f"{comment}  {field}{'' if field in required else '?'}: {_type(of)};\n")
    return f"\n/** {about['description'].splitlines()[0]} */\nexport interface {name} {{\n{''.join(lines)}}}\n"


def _type(of: dict[str, Any]) -> str:
    """Return the type of a JSON schema, as far as our models use one."""
    if "$ref" in of:
        return str(of["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in of:
        return " | ".join(_type(one) for one in of["anyOf"])
    if "enum" in of:
        return " | ".join(json.dumps(value) for value in of["enum"])
    if of.get("type") == "array":
        return f"({_type(of['items'])})[]" if "anyOf" in of["items"] else f"{_type(of['items'])}[]"
    if of.get("type") == "object":
        inner = of.get("additionalProperties")
        return f"Record<string, {_type(inner) if isinstance(inner, dict) else 'unknown'}>"
    return _PLAIN.get(of.get("type", ""), "unknown")


def main(arguments: list[str]) -> int:
    """Write the types, or with --check say whether they are stale."""
    if arguments == ["--check"]:
        fresh = TARGET.is_file() and TARGET.read_text(encoding="utf-8") == types()
        sys.stdout.write(
            "types of the page are up to date\n" if fresh else f"stale: web/page/{TARGET.name}; run make web\n"
        )
        return 0 if fresh else 1
    TARGET.write_text(types(), encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
