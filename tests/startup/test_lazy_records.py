"""Methods of dataclasses that are written at their first call do what those of Python do; so do types that are parsed late."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from types import ModuleType

import pytest

from crowdveil.startup.lazy_records import write_methods_later

CLASSES = """
from dataclasses import dataclass, field

@dataclass(frozen=True)
class Point:
    "A point."
    x: int
    y: int = 2
    more: list = field(default_factory=list, compare=False)

@dataclass(frozen=True)
class Named(Point):
    "A point with a name."
    name: str = "a"

@dataclass(order=True, slots=True)
class Size:
    "A size."
    a: int
"""


def _made(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    with monkeypatch.context() as patched:
        patched.setattr(dataclasses, "_create_fn", dataclasses._create_fn)  # type: ignore[attr-defined]
        write_methods_later()
        exec(CLASSES, vars(module))
    return module


@pytest.mark.skipif(not hasattr(dataclasses, "_create_fn"), reason="this Python writes methods by another function")
def test_methods_do_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, plain = (_made(name, monkeypatch) for name in ("crowdveil.made_later", "made_at_once"))
    assert "written" in ours.Point.__init__.__code__.co_freevars
    assert "written" not in plain.Point.__init__.__code__.co_freevars
    for module in (ours, plain):
        point, named = module.Point(1), module.Named(1, 2, name="b")
        assert repr(point) == "Point(x=1, y=2, more=[])" and point == module.Point(1, more=[3]) != named
        assert hash(point) == hash(module.Point(1)) and dataclasses.replace(named, x=5).x == 5
        with pytest.raises(dataclasses.FrozenInstanceError):
            point.x = 3
        with pytest.raises(dataclasses.FrozenInstanceError):
            del named.name
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
            module.Point()
        assert module.Size(1) < module.Size(2) and repr(module.Size(1)) == "Size(a=1)"
    assert "written" not in ours.Point.__init__.__code__.co_freevars


def test_another_python_is_left_as_it_is() -> None:
    code = (
        "import dataclasses\nfrom crowdveil.startup.lazy_records import write_methods_later\n"
        "other = dataclasses._create_fn = lambda name: None\nwrite_methods_later()\n"
        "raise SystemExit(dataclasses._create_fn is not other)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


TYPES = """
import typing
from crowdveil.startup.lazy_records import parse_types_later
plain = typing.ForwardRef.__init__
for _ in range(2):
    parse_types_later()
late = typing.ForwardRef.__init__ is not plain
unparsed = typing.ForwardRef("dict[str, int]")

class Schema(typing.TypedDict):
    a: "list[int]"
    b: "typing.Required[str]"

hints = typing.get_type_hints(Schema, include_extras=True)
assert hints == {"a": list[int], "b": typing.Required[str]}, hints
assert unparsed == typing.ForwardRef("dict[str, int]") and hash(unparsed) == hash(typing.ForwardRef("dict[str, int]"))
assert unparsed._evaluate({}, {}, frozenset()) == dict[str, int]
assert repr(unparsed) == "ForwardRef('dict[str, int]')" and not hasattr(unparsed, "__origin__")
for wrong, error in ((5, TypeError), ("a b", SyntaxError)):
    try:
        typing.ForwardRef(wrong)._evaluate({}, {}, frozenset())
    except error as raised:
        assert "Forward reference must be" in str(raised)
    else:
        raise AssertionError(wrong)
print(late)
"""


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="evaluates with other arguments")
def test_types_that_are_parsed_late_are_the_same() -> None:
    """In a process of its own, since all code of a process shares the types."""
    shown = subprocess.run([sys.executable, "-c", TYPES], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "True"


def test_types_of_another_python_are_left_as_they_are() -> None:
    code = (
        "import typing\nfrom crowdveil.startup.lazy_records import parse_types_later\n"
        "class Other: pass\ntyping.ForwardRef, before = Other, dict(vars(Other))\nparse_types_later()\n"
        "raise SystemExit(dict(vars(Other)) != before)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
