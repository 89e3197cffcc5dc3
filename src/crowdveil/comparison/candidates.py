"""The methods of a comparison with their parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import Option, ParameterError
from crowdveil.methods.base import Method
from crowdveil.model.flows import Flows
from crowdveil.model.release import FlowRelease, Release, TrajectoryRelease
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params, named_parameters
from crowdveil.registry import all_methods, find_method

CONFIDENTIAL = "Nothing was published; these numbers are exact and confidential."
K: dict[type, tuple[int, ...]] = {Flows: (10,), Trajectories: (2, 4, 8)}
"""Default group sizes by the input of the methods."""
KINDS: dict[type, tuple[str, type[Release]]] = {
    Flows: ("flows", FlowRelease),
    Trajectories: ("trajectories", TrajectoryRelease),
}
"""The name of a method's input, and the type of its release."""
DYADIC_TILES = 1000
"""Largest number of tiles for dyadic splits by default: they take very long on larger maps."""


@dataclass(frozen=True)
class Candidate:
    """A method with its parameters.

    Attributes
    ----------
    label
        The method as it was named, such as `joint:splits=dyadic`.
    varied
        The varied parameters of the comparison, with their values for this candidate.
    """

    label: str
    method: Method
    params: Params
    varied: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def named(cls, text: str, more: Mapping[str, Any], varied: Sequence[str] = ()) -> Candidate:
        """Return the candidate of `name` or `name:parameter=value:…` with more parameters."""
        name, given = named_parameters(text, "joint:splits=dyadic")
        method = find_method(name)
        label = ":".join((method.name, *(part.strip() for part in text.split(":")[1:])))
        try:
            params = method.params.checked({**more, **given})
        except ParameterError as error:
            raise ParameterError(method.name, error.text) from None
        return cls(label, method, params, {each: getattr(params, each) for each in varied if hasattr(params, each)})

    @property
    def k(self) -> int | None:
        """The group size; None if the method has none."""
        return getattr(self.params, "k", None)

    @property
    def suppress(self) -> str | None:
        """The suppression budget as text, "10%" or "500trips"; None if the method has none."""
        budget = getattr(self.params, "suppress", None)
        return f"{100 * budget:g}%" if isinstance(budget, float) else budget

    def run(self, data: Flows | Trajectories, seed: int, progress: Progress = no_progress) -> Any:
        """Run the method and return the release, without writing it."""
        kind, wanted = KINDS[self.method.takes]
        release = self.method.run(data, self.params, np.random.default_rng(seed), progress)
        if not isinstance(release, wanted):
            raise ParameterError(
                self.method.name, f"Expected a release of {kind} from the method, got another. Name another method."
            )
        return release


def kind_of(names: Sequence[str] | None, otherwise: type) -> type:
    """Return the input type of the named methods, `otherwise` if none is named; raise if they differ."""
    if names is None:
        return otherwise
    if not names:
        raise ParameterError(
            Option("methods"), "Expected at least one method, got none. Omit the option to run all of them."
        )
    first, *others = [find_method(named_parameters(name, "joint:splits=dyadic")[0]) for name in names]
    for other in others:
        if other.takes is not first.takes:
            raise ParameterError(
                Option("methods"),
                f"{first.name} is for {KINDS[first.takes][0]} and {other.name} for {KINDS[other.takes][0]}. "
                "Compare them in two runs.",
            )
    return first.takes


def all_names(takes: type, tiles: int = 0) -> list[str]:
    """Return all methods for a type of input, and dyadic splits except on large maps."""
    names = [name for name, method in all_methods().items() if method.takes is takes]
    if "joint" in names and tiles <= DYADIC_TILES:
        names.insert(names.index("joint") + 1, "joint:splits=dyadic")
    return names


def combinations(names: Sequence[str], values: Mapping[str, Sequence[Any]], varied: Sequence[str]) -> list[Candidate]:
    """Return the methods with each combination of values of their parameters.

    A parameter in the name of a method is not varied.
    """
    made: dict[tuple[str, Params], Candidate] = {}
    used = set[str]()
    for name in names:
        text, given = named_parameters(name, "joint:splits=dyadic")
        fields = find_method(text).params.model_fields
        used |= fields.keys() & values.keys()
        free = [each for each in values if each in fields and each not in given]
        for chosen in product(*(values[each] for each in free)):
            candidate = Candidate.named(name, dict(zip(free, chosen, strict=True)), varied)
            made.setdefault((candidate.label, candidate.params), candidate)
    for parameter in [each for each in values if each not in used]:
        option = Option(parameter) if parameter in ("k", "suppress") else Option("vary")
        raise ParameterError(option, f"Expected a parameter of a compared method, got {parameter}. Leave it out.")
    return list(made.values())


def varied_values(given: Mapping[str, Any] | Sequence[str] | None) -> dict[str, list[Any]]:
    """Return the values of each varied parameter, from texts such as `v_target=40,80` or from lists by name."""
    pairs = given.items() if isinstance(given, Mapping) else [_named_values(text) for text in given or ()]
    found: dict[str, list[Any]] = {}
    for name, values in pairs:
        listed = list(values) if isinstance(values, list | tuple) else [values]
        if not name or not listed or name in ("k", "suppress"):
            raise ParameterError(
                Option("vary"),
                "Expected a parameter with values, as in v_target=40,80, and not k or suppress. Change it.",
            )
        found[name.replace("-", "_")] = list(dict.fromkeys(listed))
    return found


def _named_values(text: str) -> tuple[str, list[str]]:
    name, _, values = text.partition("=")
    return name.strip(), [value.strip() for value in values.split(",") if value.strip()]
