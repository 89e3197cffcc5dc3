"""Candidates of a comparison by name, and helpers for tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from crowdveil.errors import CrowdveilError, Option, ParameterError, Reason
from crowdveil.methods.base import Method
from crowdveil.model.arrays import Floats
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Budgeted, Params, named_parameters
from crowdveil.progress import Progress, no_progress
from crowdveil.registry import find_method

COMPARING = "comparing"
"""First word of the stage that says how many methods run on how much data."""
CONFIDENTIAL = "Nothing was published; these numbers are exact and confidential."
KINDS: dict[type, tuple[str, type[Release]]] = {
    Flows: ("flows", FlowRelease),
    Trajectories: ("trajectories", TrajectoryRelease),
}
"""The name of a method's input, and the type of its release."""

REFUSALS = (CrowdveilError, MemoryError)
"""Errors of one method that leave it out of a table, and the others in it."""

Stage = Callable[[str], None]


@dataclass(frozen=True)
class Candidate:
    """A method with its parameters and its label in the table."""

    label: str
    method: Method
    params: Params

    @classmethod
    def named(cls, text: str, shared: Mapping[str, Any]) -> Candidate:
        """Return the candidate of `name` or `name:parameter=value:…`; `shared` holds defaults for methods that have them."""
        name, given = named_parameters(text, "joint:splits=dyadic")
        method = find_method(name)
        values = {key: value for key, value in shared.items() if key in method.params.model_fields}
        # A budget of its own, of either kind, replaces the shared one.
        if not given.keys().isdisjoint(Budgeted.model_fields):
            values = {key: value for key, value in values.items() if key not in Budgeted.model_fields}
        label = ":".join((method.name, *(part.strip() for part in text.split(":")[1:])))
        try:
            return cls(label, method, method.params.checked({**values, **given}))
        except ParameterError as error:
            raise ParameterError(method.name, error.text) from None

    @property
    def k(self) -> int | None:
        """Its k; None if it has none."""
        return getattr(self.params, "k", None)

    def run(self, data: Flows | Trajectories, seed: int, progress: Progress = no_progress) -> tuple[float, Any]:
        """Run the method; return processor seconds and the release, which is not written."""
        kind, wanted = KINDS[self.method.takes]
        begin = time.process_time()
        release = self.method.run(data, self.params, np.random.default_rng(seed), progress)
        if not isinstance(release, wanted):
            raise ParameterError(self.method.name, f"wanted a method that releases {kind}; name another method.")
        return time.process_time() - begin, release


def announcement(stage: str) -> list[str]:
    """Return a sentence on how much is compared, from the stage that says so; none for other stages."""
    return [f"{stage}; change the number with --sample."] if stage.startswith(COMPARING) else []


def data_kind_of(names: Sequence[str] | None, otherwise: type = Flows) -> type:
    """Return the input type of the named methods, `otherwise` if none is named.

    Raise unless every name is that of a method with valid parameters, and all methods take the same input.
    """
    if names is None:
        return otherwise
    if not [name for name in names if name.strip()]:
        raise ParameterError(Option("methods"), "wanted at least one, but got none; omit the option for all of them.")
    first, *others = [Candidate.named(name, {}).method for name in names]
    for other in others:
        if other.takes is not first.takes:
            raise ParameterError(
                Option("methods"),
                f"{first.name} is for {KINDS[first.takes][0]} and {other.name} for {KINDS[other.takes][0]}; "
                "compare them in two runs.",
            )
    return first.takes


def with_each_k(names: Sequence[str], ks: Sequence[str]) -> list[str]:
    """Return each method with a k once for each of `ks`, and the others unchanged."""
    return [made for name in names for made in _with_each(name, "k", ks)]


def with_each(names: Sequence[str], varied: Mapping[str, Sequence[str]]) -> list[str]:
    """Return each method once for each combination of the values of the varied parameters that it has."""
    for parameter, values in varied.items():
        if not any(_has(name, parameter) for name in names):
            raise ParameterError(
                Option("vary"), f"no method that is compared has a parameter {parameter}; see their parameters."
            )
        names = [made for name in names for made in _with_each(name, parameter, values)]
    return list(names)


def _has(name: str, parameter: str) -> bool:
    return parameter in Candidate.named(name, {}).method.params.model_fields


def _with_each(name: str, parameter: str, values: Sequence[str]) -> list[str]:
    """Return a method with each value of a parameter; unchanged if it has none, or one of its own."""
    own = any(part.partition("=")[0].strip().replace("-", "_") == parameter for part in name.split(":")[1:])
    return [f"{name}:{parameter}={value}" for value in values] if _has(name, parameter) and not own else [name]


def varied_values(given: Mapping[str, Any] | Sequence[str] | None) -> dict[str, list[str]]:
    """Return the values of each varied parameter, from texts such as `v_target=40,80` or from lists by name."""
    if isinstance(given, Mapping):
        listed = {
            name: [str(value) for value in (values if isinstance(values, list | tuple) else [values])]
            for name, values in given.items()
        }
    else:
        pairs = [text.partition("=") for text in given or ()]
        listed = {name.strip(): [v.strip() for v in values.split(",") if v.strip()] for name, _, values in pairs}
    for name, values in listed.items():
        if not name or not values or name in ("k", "suppress", "suppress_trips"):
            raise ParameterError(
                Option("vary"),
                "wanted a parameter other than k and the budget, and its values, as in v_target=40,80,160; give both.",
            )
    return {name.replace("-", "_"): list(dict.fromkeys(values)) for name, values in listed.items()}


def without_k(label: str) -> str:
    """Return the label of a method without its k."""
    return ":".join(part for part in label.split(":") if not part.startswith("k="))


class RemainingTime:
    """Estimate of the time that is left: the rest of the work at the speed so far."""

    def __init__(self, work: float) -> None:
        self.work, self.done, self.begin = work, 0.0, time.monotonic()

    def shown(self) -> str:
        """Return the estimate for the name of a stage; "" while nothing is done."""
        if self.done <= 0:
            return ""
        seconds = (time.monotonic() - self.begin) * max(self.work - self.done, 0) / self.done
        return f" (about {seconds / 60:.0f} min left)" if seconds >= 90 else f" (about {seconds:.0f} s left)"


def reason_of(error: BaseException) -> str:
    """Return why a method is left out, as a sentence."""
    if isinstance(error, CrowdveilError):
        return Reason(error)
    return "it needs more memory than there is; use a smaller sample."


def mean_of_defined(values: Floats) -> float:
    """Return the mean of the finite values; NaN if there are none."""
    defined = values[np.isfinite(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def plain_column(values: list[Any]) -> Any:
    """Return a column of numbers, or of texts where a value is none; null where a method has no such parameter."""
    numbers = all(value is None or isinstance(value, int | float) for value in values)
    return pa.array(values if numbers else [None if value is None else str(value) for value in values])


def numbers_or_null(values: list[float]) -> Any:
    """Return a column of numbers, null where undefined."""
    return pa.array([value if np.isfinite(value) else None for value in values], pa.float64())
