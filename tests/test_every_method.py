"""The same contract for every method in the registry: what is guaranteed of one is guaranteed of all."""

from __future__ import annotations

import inspect
import json
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from examples import tries
from given_boxes import with_boxes
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from synthetic import grid_frame

from crowdveil import testing
from crowdveil.compat.mobidatalab import names as mobidatalab
from crowdveil.engine.progress import no_progress
from crowdveil.errors import CrowdveilError, GuaranteeViolatedError, ParameterError
from crowdveil.methods.base import Facts, Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, TrajectoryRelease
from crowdveil.model.tessellation import grid_zones
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import rows
from crowdveil.registry import METHODS, all_methods, find_method
from crowdveil.run import pipeline, releases
from crowdveil.run.verification import stated_guarantees

ROOT = Path(__file__).parents[1]
ALL = [find_method(name) for name in METHODS]
TIMED = ("manifest.json", "report.html")
"""What says when a release was made: the manifest, and the report by the hash of it."""
EVERY = pytest.mark.parametrize("method", ALL, ids=list(METHODS))
OF_TRAJECTORIES = pytest.mark.parametrize("method", [m for m in ALL if m.takes is Trajectories], ids=lambda m: m.name)
STRATEGIES = {Flows: testing.flows, Trajectories: testing.trajectories}
GRID_ONLY = {"uniform"}
WITH_REPORT = {"joint", "microaggregation"}
"""Methods whose attacks and reports are compared too; attacks and reports are the same code for all methods."""
TABLES_ONLY = {"attack": False, "report": False}
FORMATS = st.sampled_from(["csv", "parquet"])
FILES_SLOW = settings(max_examples=tries(15), deadline=None, suppress_health_check=list(HealthCheck))


def _data(method: Method, *, empty: bool = False) -> st.SearchStrategy[Any]:
    drawn = STRATEGIES[method.takes](empty=empty)
    if method.name == "fixed":
        return drawn.map(lambda data: with_boxes(data, 1))
    return drawn.map(_on_grid) if method.name in GRID_ONLY else drawn


def _on_grid(data: Flows) -> Flows:
    """The same flows between cells of a grid."""
    grid = grid_frame(np.array([2.0, 2.01]), np.array([48.0, 48.01]), 100.0)
    n = np.arange(len(data.zones), dtype=np.int32)
    return replace(data, zones=grid_zones(grid, n % 3, n // 3))


def _run(method: Method, data: Any, seed: int = 0, **parameters: Any) -> Any:
    return method.run(data, method.params.checked(parameters), np.random.default_rng(seed), no_progress)


def _small_k(method: Method) -> dict[str, Any]:
    """The smallest k that is allowed, so that small data is not all suppressed."""
    return {"k": 2} if "k" in method.params.model_fields else {}


def _extras(method: Method) -> dict[str, Any]:
    """Return the options that leave out attacks and report where they are not compared."""
    return {} if method.name in WITH_REPORT else TABLES_ONLY


def _arrays(value: Any) -> dict[str, Any]:
    return {f.name: getattr(value, f.name) for f in fields(value) if isinstance(getattr(value, f.name), np.ndarray)}


def _empty(method: Method) -> Any:
    """No data, of the kind that a method takes."""
    if method.takes is Flows:
        return Flows.from_rows(testing.Zones.from_ids(["a"]), *(np.zeros(0, np.int64) for _ in range(4)))
    nowhere = (np.zeros(0) for _ in range(3))
    return Trajectories(*nowhere, np.zeros(1), np.zeros(0), np.zeros(0), np.zeros(0, dtype=object))


@EVERY
def test_empty_data_gives_an_empty_release(method: Method) -> None:
    empty = _empty(method)
    assert len(_run(method, with_boxes(empty, 1) if method.name == "fixed" else empty)) == 0


@EVERY
@settings(max_examples=tries(25), deadline=None)
@given(draw=st.data())
def test_one_row(method: Method, draw: st.DataObject) -> None:
    data = draw.draw(_data(method))
    one = data.where(np.arange(len(data)) == 0)
    # Noise has rows where nobody traveled too: at most one for each pair of tiles.
    most = one.steps * len(one.zones) ** 2 if method.row_semantics == "noisy" else 1
    assert len(_run(method, one, **_small_k(method))) <= most


@EVERY
@settings(max_examples=tries(25), deadline=None)
@given(draw=st.data())
def test_input_is_unchanged_and_output_shares_no_memory_that_can_be_written(
    method: Method, draw: st.DataObject
) -> None:
    data = draw.draw(_data(method))
    before = {name: array.copy() for name, array in _arrays(data).items()}
    release = _run(method, data, **_small_k(method))
    for name, array in _arrays(data).items():
        assert np.array_equal(array, before[name]), name
    assert is_dataclass(release) and not any(a.flags.writeable for a in _arrays(release).values())


@EVERY
@FILES_SLOW
@given(draw=st.data())
def test_same_seed_same_bytes(method: Method, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    data, table_format = draw.draw(_data(method)), draw.draw(FORMATS)
    if data.total_people < 2:
        return
    options = {"seed": 3, "format": table_format, **_extras(method)}
    contents = []
    for _ in range(2):
        out = tmp_path_factory.mktemp("same") / "out"
        pipeline.run(pipeline.Request(method.name, data, out, _small_k(method), options=options))
        contents.append({p.name: p.read_bytes() for p in out.iterdir() if p.name not in TIMED})
    assert contents[0] == contents[1]


@EVERY
@FILES_SLOW
@given(draw=st.data())
def test_guarantees_are_kept_on_the_written_file(
    method: Method, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data, table_format = draw.draw(_data(method)), draw.draw(FORMATS)
    if data.total_people < 2:
        return
    out = tmp_path_factory.mktemp("kept") / "out"
    options = {"format": table_format, **TABLES_ONLY}
    result = pipeline.run(pipeline.Request(method.name, data, out, _small_k(method), options=options))
    checked = releases.verify(out)
    assert checked and not any(finding.violated for _, finding in checked)
    assert [p["name"] for p in result.manifest["guarantees"]] == [p.name for p, _ in checked]
    assert result.manifest["k_unit"] == data.k_unit
    for entry in result.stated.guarantees:  # none can be taken out by hand
        rest = [other for other in result.stated.guarantees if other is not entry]
        with pytest.raises(GuaranteeViolatedError, match=f"does not state the guarantee {entry.name} "):
            stated_guarantees(result.stated.model_copy(update={"guarantees": rest}))


@OF_TRAJECTORIES  # ids of zones are places, and are published
@FILES_SLOW
@given(draw=st.data())
def test_no_original_id_leaves(method: Method, draw: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    data = draw.draw(_data(method))
    if data.total_people < 2:
        return
    out = tmp_path_factory.mktemp("ids") / "out"
    options = {"format": "csv", **_extras(method)}
    pipeline.run(pipeline.Request(method.name, data, out, _small_k(method), options=options))
    written = "".join(p.read_text() for p in out.iterdir())
    assert "person-" not in written
    table = [line.split(",") for line in (out / "trajectories.csv").read_text().splitlines()[1:]]
    assert not {row[3] for row in table} & {str(i) for i in data.ids}


@EVERY
@settings(max_examples=tries(25), deadline=None)
@given(draw=st.data())
def test_duplicates_do_not_matter_to_validity(method: Method, draw: st.DataObject) -> None:
    """Every trajectory twice, under another id and the same person; flows cannot repeat."""
    data = draw.draw(_data(method))
    if isinstance(data, Trajectories):
        data = _twice(data)
    release = _run(method, data, **_small_k(method))
    assert isinstance(release, FlowRelease | TrajectoryRelease)


def _twice(data: Trajectories) -> Trajectories:
    two = (np.concatenate([a, a]) for a in (data.lon, data.lat, data.t))
    offsets = np.concatenate([data.offsets, data.offsets[1:] + data.points])
    people = data.person if data.k_unit == "people" else data.person + len(data)
    labels = data.people_ids if data.k_unit == "people" else np.concatenate([data.people_ids, data.people_ids])
    person = np.concatenate([data.person, people])
    return Trajectories(*two, offsets, np.arange(2 * len(data)), person, labels, data.k_unit)


def _bad_values() -> list[Any]:
    """(method, parameter, bad values) made from each parameter's declaration."""
    return [
        pytest.param(method, name, bad, id=f"{method.name}-{name}")
        for method in ALL
        for name, schema in method.params.model_json_schema()["properties"].items()
        if (bad := _bad_for(schema))
    ]


def _bad_for(schema: dict[str, Any]) -> list[Any]:
    kinds = [schema, *schema.get("anyOf", [])]
    bad: list[Any] = []
    for kind in kinds:
        if "minimum" in kind:
            bad.append(kind["minimum"] - 1)
        if "exclusiveMinimum" in kind:
            bad.append(kind["exclusiveMinimum"])
        if "maximum" in kind:
            bad.append(kind["maximum"] + 1)
        if "enum" in kind:
            bad.append("no-such-choice")
        if kind.get("type") in ("integer", "number"):
            bad += [float("nan"), float("inf"), "abc", [1]]
        if kind.get("type") == "integer":
            bad.append(2.5)
        if kind.get("type") == "boolean":
            bad.append("perhaps")
    return bad


@pytest.mark.parametrize(("method", "name", "bad"), _bad_values())
def test_bad_values_are_refused_in_one_sentence(method: Method, name: str, bad: list[Any]) -> None:
    for value in bad:
        with pytest.raises(ParameterError) as refusal:
            method.params.checked({name: value})
        sentence = str(refusal.value)
        assert sentence.startswith(f"{name}: Expected ") and sentence.endswith(".") and "\n" not in sentence, value


@EVERY
def test_unknown_parameters_are_refused(method: Method) -> None:
    with pytest.raises(ParameterError, match="no such parameter"):
        method.params.checked({"kk": 3})


@EVERY
def test_is_documented(method: Method) -> None:
    for section in ("Guarantee", "Assumptions", "Notes", "References"):
        assert f"\n{section}\n{'-' * len(section)}\n" in method.doc, section
    assert method.summary.endswith(".")
    assert all(row.help for row in rows(method.params))
    assert inspect.getdoc(method.params)


@EVERY
def test_has_a_mirror_test_file(method: Method) -> None:
    module = Path(inspect.getfile(inspect.unwrap(method.run))).relative_to(ROOT / "src" / "crowdveil")
    assert (ROOT / "tests" / module.parent / f"test_{module.name}").is_file()


@EVERY
def test_a_heuristic_guarantees_no_anonymity_and_others_do(method: Method) -> None:
    kinds = {p.kind for p in method.guarantees(method.params.checked({}), Facts.of(_empty(method)))}
    assert ("privacy" in kinds) == (method.status != "heuristic")


@EVERY
def test_schema_is_json_and_names_every_parameter(method: Method) -> None:
    schema = json.loads(json.dumps(method.params.model_json_schema()))
    assert set(schema["properties"]) == {row.name for row in rows(method.params)}


def test_names_and_aliases_are_unique() -> None:
    other = [name for names in mobidatalab.METHODS.values() for name in names.names]
    names = [*other, *(n for m in all_methods().values() for n in (m.name, *m.aliases))]
    assert len(names) == len(set(names))


@EVERY
def test_k_larger_than_the_data(method: Method, tmp_path: Path) -> None:
    if "k" not in method.params.model_fields:
        return
    zones = testing.Zones.from_ids(["a"])
    one = np.ones(1, np.int64)
    data = Flows.from_rows(zones, 0 * one, 0 * one, 0 * one, one)
    if method.takes is not Flows:
        data = Trajectories(one * 2.0, one * 48.0, one, np.array([0, 1]), one, 0 * one, np.array(["x"], dtype=object))
    with pytest.raises(CrowdveilError, match="Choose a smaller k"):
        pipeline.run(pipeline.Request(method.name, data, tmp_path / "out", {"k": 50}))
    assert list(tmp_path.iterdir()) == []
