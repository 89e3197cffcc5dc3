"""There is one sequence of stages, whatever backend does them, and a run that fails in any of them publishes nothing."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import crowdveil
from crowdveil.engine.progress import no_progress
from crowdveil.guarantees import Finding
from crowdveil.io.notes import ReadNotes
from crowdveil.model.flows import Flows
from crowdveil.reading import FlowReading, read
from crowdveil.registry import find_method
from crowdveil.run import local, pipeline
from crowdveil.run.options import RunOptions
from crowdveil.run.pipeline import Request, run_stages
from crowdveil.run.stages import Backend, RunSpec, Solution

VERBS = ["check_target", "read", "check_k", "solve", "write", "verify", "attack", "report", "publish"]
STAGES = ["reading", "anonymizing", "writing", "verifying", "attacking", "reporting"]
TRIPS = pa.table({"origin": ["a"] * 12, "destination": ["b"] * 12, "user_id": list(range(12))})


class FakeBackend(Backend):
    """Does nothing but record which verb is called; fails at one of them if asked to."""

    def __init__(self, spec: RunSpec, fails_at: str | None = None) -> None:
        super().__init__(spec)
        self.called: list[str] = []
        self.undone = False
        self.fails_at = fails_at

    def _record(self, verb: str) -> None:
        self.called.append(verb)
        if verb == self.fails_at:
            raise RuntimeError(verb)

    def check_target(self) -> None:
        self.push(self._undo)
        self._record("check_target")

    def _undo(self, kind: Any, error: Any, trace: Any) -> None:
        self.undone = kind is not None

    def read(self, notes: ReadNotes, progress: Any) -> Flows:
        self._record("read")
        flows = read(Flows, TRIPS, FlowReading(), notes)
        assert isinstance(flows, Flows)
        return flows

    def check_k(self) -> None:
        self._record("check_k")

    def solve(self, guarantees: Any, progress: Any) -> Solution:
        self._record("solve")
        return Solution({}, COST, ["a line"], notes=["a note."])

    def write(self, progress: Any) -> Any:
        self._record("write")
        return {}

    def verify(self, guarantees: Any, progress: Any) -> Any:
        self._record("verify")
        return [(guarantee, Finding.from_json(HOLDS)) for guarantee in guarantees]

    def attack(self, guarantees: Any, notes: Any, progress: Any) -> Any:
        self._record("attack")
        return []

    def report(self, manifest: Any, notes: Any) -> Any:
        self._record("report")
        return manifest

    def publish(self, manifest: Any) -> str:
        self._record("publish")
        self.close()
        return "out"


COST = {"published_volume": 0, "published_flows": 0, "published_time_steps": 0}
HOLDS = {"outcome": "holds", "counts": {}, "detail": "", "with_original": True}


def _spec(**options: Any) -> RunSpec:
    method = find_method("suppression")
    return RunSpec(method, method.params.checked({"k": 5}), FlowReading(), RunOptions(**options), TRIPS, "out")


def _recorded(monkeypatch: pytest.MonkeyPatch, backend: type[Backend]) -> list[str]:
    """The verbs that are called on a real backend, in their order."""
    called: list[str] = []
    for verb in VERBS:
        plain = getattr(backend, verb)

        def record(self: Any, *more: Any, verb: str = verb, plain: Any = plain) -> Any:
            called.append(verb)
            return plain(self, *more)

        monkeypatch.setattr(backend, verb, record)
    return called


def test_stages_run_in_one_order() -> None:
    backend, stages = FakeBackend(_spec()), []
    with backend:
        result = run_stages(backend.spec, backend, no_progress, stages.append)
    assert backend.called == VERBS and stages == STAGES
    assert result.folder == "out" and result.cost == ["a line"] and "a note." in result.notes.messages
    assert not backend.undone


def test_stages_that_are_not_asked_for_are_left_out() -> None:
    backend = FakeBackend(_spec(attack=False, report=False))
    with backend:
        result = run_stages(backend.spec, backend, no_progress, lambda name: None)
    assert backend.called == [v for v in VERBS if v not in ("attack", "report")]
    assert result.manifest["risk"] is None


def test_the_local_backend_is_driven_through_the_same_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called, stages = _recorded(monkeypatch, local.LocalBackend), []
    pipeline.run(Request("suppression", TRIPS, tmp_path / "out", {"k": 5}), stage=stages.append)
    assert called == VERBS and stages == STAGES


@pytest.mark.parametrize("verb", VERBS)
def test_a_failure_in_any_stage_publishes_nothing(verb: str) -> None:
    backend = FakeBackend(_spec(), fails_at=verb)
    with pytest.raises(RuntimeError, match=verb), backend:
        run_stages(backend.spec, backend, no_progress, lambda name: None)
    assert backend.called == VERBS[: VERBS.index(verb) + 1] and backend.undone


def test_the_sequence_stands_once() -> None:
    """No other module of the package calls the verbs that only the sequence may call.

    In methods/ and solve/, `solve` is called on optimization problems: layers below run/ (.importlinter) have no backend.
    A backend that extends another may leave a stage to it, by `super()`.
    """
    only_here = {"check_k", "solve", "publish"}
    assert only_here <= set(VERBS) == Backend.__abstractmethods__
    source = Path(crowdveil.__file__).parent
    texts = {path.relative_to(source).as_posix(): path.read_text(encoding="utf-8") for path in source.rglob("*.py")}
    calls = {
        (name, node.func.attr)
        for name, text in texts.items()
        if any(f".{verb}(" in text for verb in only_here)  # parsing all files takes seconds
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in only_here
        if ast.unparse(node.func.value) != "super()"
    }
    problems = {(path, verb) for path, verb in calls if verb == "solve" and path.startswith(("methods/", "solve/"))}
    assert calls - problems == {("run/pipeline.py", verb) for verb in only_here}
