"""The table of mdl-anonymizer's names: it names what is registered, and no record of the core has its names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest

from crowdveil.analysis.base import Analysis
from crowdveil.compat.mobidatalab.names import TABLE, Names
from crowdveil.measures.base import Measure
from crowdveil.methods.base import Method
from crowdveil.reading import READINGS
from crowdveil.registry import (
    ANALYSES,
    MEASURES,
    METHODS,
    all_aggregations,
    find_aggregation,
    find_analysis,
    find_measures,
    find_method,
)

REGISTERED = {"method": METHODS, "measure": MEASURES, "analysis": ANALYSES, "aggregation": all_aggregations()}
FIND: dict[str, Callable[[str], Any]] = {
    "method": lambda name: [find_method(name)],
    "measure": find_measures,
    "analysis": lambda name: [find_analysis(name)],
    "aggregation": lambda name: [find_aggregation(name)],
}
ENTRIES = [(kind, ours, names) for kind, table in TABLE.items() for ours, names in table.items()]


@pytest.mark.parametrize(("kind", "ours", "names"), ENTRIES, ids=lambda x: x if isinstance(x, str) else "")
def test_every_entry_names_what_is_registered_and_is_found_by_its_names(kind: str, ours: str, names: Names) -> None:
    assert ours in REGISTERED[kind]
    for name in names.names:
        assert ours in [found.name for found in FIND[kind](name)]


def _known(kind: str, ours: str) -> set[str]:
    (found,) = FIND[kind](ours)
    reading = READINGS[found.takes].model_fields if kind == "method" else {}
    own = {} if found.params is None else found.params.model_fields
    return {"", *own, *reading}


@pytest.mark.parametrize(("kind", "ours", "names"), ENTRIES, ids=lambda x: x if isinstance(x, str) else "")
def test_every_parameter_exists_here(kind: str, ours: str, names: Names) -> None:
    # A name that stands for several measures has the parameters of all of them.
    found = [each.name for name in (ours, *names.names) for each in FIND[kind](name)] if names.parameters else []
    known = {parameter for name in found for parameter in _known(kind, name)}
    assert set(names.parameters.values()) <= known
    assert set(names.factors) <= set(names.parameters)


def test_values_are_converted_to_our_units_and_names() -> None:
    names = Names((), {"thold": "max_m", "sort": ""}, {"thold": 1000.0})
    assert names.translate({"thold": 2, "k": 3, "sort": True}) == {"max_m": 2000.0, "k": 3}
    assert names.translate({"thold": "far"}) == {"max_m": "far"}
    assert names.translate({"thold": True}) == {"max_m": True}


def test_no_record_of_the_core_has_parameters_of_other_software() -> None:
    for record in (Method, Measure, Analysis):
        assert not {"parameter_aliases", "alias_factors"} & {field.name for field in fields(record)}
