"""Methods of our dataclasses that are written at their first call do what those of Python do."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from types import ModuleType

import pytest

from crowdveil.cli.lazy_records import write_methods_later

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
        "import dataclasses\nfrom crowdveil.cli.lazy_records import write_methods_later\n"
        "other = dataclasses._create_fn = lambda name: None\nwrite_methods_later()\n"
        "raise SystemExit(dataclasses._create_fn is not other)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
