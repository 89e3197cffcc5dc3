from __future__ import annotations

import pytest
from pydantic import Field

from crowdveil.engine import extensions
from crowdveil.errors import ParameterError
from crowdveil.methods.od import suppression
from crowdveil.methods.od.atg_dual import AtgDualParams
from crowdveil.params import Params
from crowdveil.registry import all_methods, find_method


class Plain(Params):
    """A parameter without bounds."""

    x: float = 1.0
    """Any number."""


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_no_parameter_is_infinite_even_without_bounds(bad: float) -> None:
    with pytest.raises(ParameterError, match="finite"):
        Plain.checked({"x": bad})


def test_parameters_do_not_change() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Plain().x = 2.0  # type: ignore[misc]


def test_long_values_are_not_echoed() -> None:
    with pytest.raises(ParameterError) as refusal:
        Plain.checked({"x": "a" * 1000})
    assert len(str(refusal.value)) < 150


class Worded(Params):
    """Parameters whose bounds pydantic reports in sentences of its own."""

    word: str = Field(pattern="^[a-z]+$", max_length=3)
    """A word."""
    many: list[int] = Field([1], min_length=1)
    """Numbers."""


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"word": "A"}, "word: Expected text of the pattern '^[a-z]+$', got 'A'."),
        ({"word": "abcd"}, "word: Expected at most 3 characters, got 'abcd'."),
        ({"word": "a", "many": []}, "many: Expected a list of 1 or more."),
        ({}, "word: Expected a value. Give it."),
    ],
)
def test_what_is_wanted_is_one_plain_sentence(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        Worded.checked(values)
    assert str(refusal.value) == sentence


class _EntryPoint:
    def __init__(self, name: str, value: object) -> None:
        self.name, self._value = name, value

    def load(self) -> object:
        return self._value


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("suppression", suppression.METHOD, "two installed packages"),
        ("other", suppression.METHOD, "no Method of this name"),
        ("other", "no method", "no Method"),
    ],
)
def test_packages_that_do_not_fit_are_refused(
    name: str, value: object, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "entry_points", lambda group: [_EntryPoint(name, value)])
    all_methods.cache_clear()
    extensions.installed.cache_clear()
    try:
        with pytest.raises(ParameterError, match=fault):
            all_methods()
    finally:
        all_methods.cache_clear()
        extensions.installed.cache_clear()


def test_aliases_find_the_method() -> None:
    assert find_method("SimpleGeneralization").name == "simple-generalization"
    with pytest.raises(ParameterError, match="Known are joint"):
        find_method("magic")


@pytest.mark.parametrize("value", ["abc", -3, "0", "inf", float("nan"), True])
def test_a_target_volume_is_a_number_or_a_way_to_find_one(value: object) -> None:
    with pytest.raises(ParameterError, match="v_target: Expected auto, sample, or a volume above 0"):
        AtgDualParams.checked({"v_target": value})


@pytest.mark.parametrize(("value", "read"), [("auto", "auto"), ("sample", "sample"), ("300", 300.0), (2.5, 2.5)])
def test_target_volumes_are_read(value: object, read: object) -> None:
    assert AtgDualParams.checked({"v_target": value}).v_target == read
