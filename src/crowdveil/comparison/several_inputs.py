"""Comparisons of the same methods on several inputs, or on several grids of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from crowdveil.comparison.flows import FlowComparison
from crowdveil.comparison.trajectories import TrajectoryMethodComparison
from crowdveil.model.tabular import TableProperty


@dataclass(frozen=True, eq=False, repr=False)
class InputComparisons(TableProperty):
    """Comparisons of the same methods by input.

    Attributes
    ----------
    by_input
        The comparison of each input, by its name.
    """

    by_input: Mapping[str, FlowComparison | TrajectoryMethodComparison]

    @property
    def of_flows(self) -> dict[str, FlowComparison]:
        """Return the comparisons of flows by input; none where the inputs are trajectories."""
        return {name: each for name, each in self.by_input.items() if isinstance(each, FlowComparison)}

    @property
    def left_out(self) -> dict[str, str]:
        """Why methods are missing, by input and name."""
        return {f"{name}, {label}": why for name, each in self.by_input.items() for label, why in each.left_out.items()}

    @property
    def table(self) -> pa.Table:
        """A row per input and method, with the number of tiles for flows."""
        return self._joined({name: each.table for name, each in self.by_input.items()}, tiles=bool(self.of_flows))

    @property
    def values(self) -> pa.Table:
        """The values of each input, with its name."""
        return self._joined({name: each.values for name, each in self.by_input.items()}, tiles=False)

    def _joined(self, tables: Mapping[str, pa.Table], *, tiles: bool) -> pa.Table:
        made = []
        for name, table in tables.items():
            first = {"input": pa.array([name] * table.num_rows, pa.string())}
            if tiles:
                first["tiles"] = pa.array([len(self.of_flows[name].flows.zones)] * table.num_rows, pa.int64())
            made.append(pa.table({**first, **{column: table[column] for column in table.column_names}}))
        return pa.concat_tables(made, promote_options="default")

    def lines(self) -> list[str]:
        """Return the tables as text, one after the other."""
        made: list[str] = []
        for name, each in self.by_input.items():
            tiles = f", {len(each.flows.zones):,} tiles" if isinstance(each, FlowComparison) else ""
            made += [f"{name}{tiles}", *each.lines(), ""]
        return made[:-1]

    def caption(self) -> str:
        """Return what the numbers of the tables mean."""
        return "\n".join(dict.fromkeys(each.caption() for each in self.by_input.values()))
