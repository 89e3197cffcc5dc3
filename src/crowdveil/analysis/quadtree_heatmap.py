"""Publish the density of locations on a map of sectors, each with locations of at least min_k people.

What it does
------------
The map is divided in four recursively: a sector with more than `split_n_locations` locations is divided, down to sides of
`min_sector_length_m`, so that sectors are small where density is high. No sector may have locations of fewer than min_k people.
A quarter that would is merged with an adjacent one: the smallest quarter first, with the smaller of its neighbors (not across
the corner) that together have min_k people. A merged sector of at least 2·min_k locations is divided again like the whole map.
Density is locations over area on the ground.

Guarantee
---------
Every sector has locations of at least min_k people (or trajectories, if people are not known), counted exactly. Sectors do not
overlap. A location outside all sectors has fewer than min_k people, possibly none. The number of suppressed locations is
published only if it is 0, or if they are of at least min_k people. All of this is verified on the written file against the
original locations before publication; plots are drawn from the verified file.

Assumptions
-----------
One map of the data is published: two with different parameters can be subtracted from each other. People are distinguished by
their ids. A sector's density may come mostly from one person.

Notes
-----
MobiDataLab counts locations, so that some sectors of its implementation hold one person. It does not divide a sector if one
of its quarters has too few locations and no neighbor to merge with: one distant person can leave a map of a few sectors
(San Francisco's cabs, 643 rides, min_k = 5: 4 sectors). Here such a quarter is suppressed if it has at most the share
`suppress` of the sector's locations (381 sectors, 4 of 3,814 locations suppressed). A merged sector is twice as long as wide,
and in MobiDataLab all sectors inside it stay so or get longer; with `halve_long` they are halved if both halves have min_k
people, or one can be suppressed. `suppress` 0 without `halve_long` is MobiDataLab's method.

MobiDataLab's map is the box around all locations, whose sides reveal the outermost people. Here it is a square around the
middle of a public box, with sides of the smallest sector's length times a power of two.

References
----------
MobiDataLab D4.10, sections 6.3.5.1 and 6.4.3.1 (QuadTreeHeatMap). Lagonigro, Oller, Martori, A quadtree approach based on
European geographic grids: reconciling data privacy and accuracy, SORT 41(1), 2017.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from pydantic import Field, ValidationInfo, field_validator

from crowdveil.analysis.base import Analysis
from crowdveil.analysis.heatmap_manifest import (
    GEOJSON,
    HTML,
    PNG,
    SectorFindings,
    check_sectors,
    stated_guarantee,
    write_heatmap_manifest,
)
from crowdveil.engine.progress import Progress, no_progress
from crowdveil.errors import InputError, Option, OutputError, Text
from crowdveil.guarantees.base import require_checked
from crowdveil.guarantees.sectors import (
    DisjointSectors,
    EveryLocationCounted,
    SectorGuarantee,
    SectorKAnonymity,
    WellFormedSectors,
)
from crowdveil.io.atomic import check_file, check_target, new_file, new_folder, scratch_folder
from crowdveil.io.sector_maps import draw_sectors, write_page
from crowdveil.io.sectors import BOUNDS, WrittenSectors, read_sectors, sector_outlines, write_sectors
from crowdveil.model.sectors import Sectors
from crowdveil.model.tabular import Tabular
from crowdveil.model.trajectories import Trajectories
from crowdveil.params import Params
from crowdveil.solve.trajectory.quadtree import k_anonymous_sectors
from crowdveil.version import __version__

NAME = "quadtree-heatmap"
_GEOJSON_ENDINGS = (".geojson", ".json")
ENDINGS = (*_GEOJSON_ENDINGS, ".png", ".html")


Recorded = Callable[[Path, Trajectories], AbstractContextManager[None]]
"""Audits a map in a folder against a ledger and appends its entry; its end, after the folder is in place, confirms the entry."""


class HeatMapParams(Params):
    """Parameters of the heat map."""

    min_k: int = Field(5, ge=2)
    """Minimum group size of a sector: people, or trajectories if people are not known."""
    min_sector_length_m: float = Field(100.0, ge=1, le=100_000)
    """Minimum side of a sector."""
    merge_sectors: bool = True
    """Merge a sector of too few people with an adjacent one."""
    split_n_locations: int | None = None
    """Divide sectors with more locations than this. Default, and least value: the minimum group size."""
    halve_long: bool = True
    """Halve sectors that are longer than wide if both halves have enough people; otherwise merged sectors get long."""
    suppress: float = Field(0.01, ge=0, le=0.5)
    """Maximum share of a sector's locations to suppress in order to divide it: those in quarters with too few people."""

    @field_validator("split_n_locations")
    @classmethod
    def _at_least_min_k(cls, value: int | None, info: ValidationInfo) -> int | None:
        least = info.data.get("min_k", 2)
        if value is not None and value < least:
            raise ValueError(f"at least min_k, {least:,}")
        return value

    @property
    def split_above(self) -> int:
        """Number of locations above which a sector is divided."""
        return self.min_k if self.split_n_locations is None else self.split_n_locations


@dataclass(frozen=True, eq=False, repr=False)
class HeatMap(Tabular):
    """Sectors and their density.

    Attributes
    ----------
    data
        The original locations; every file is verified against them before publication.
    cut
        The sectors on their frame.
    """

    data: Trajectories
    params: HeatMapParams
    cut: Sectors

    def __len__(self) -> int:
        return len(self.cut)

    def to_arrow(self) -> pa.Table:
        """Return the table of sectors."""
        return self.sectors

    def shapes(self) -> Any:
        """Return the outline of each sector."""
        return [shapely.geometry.shape(outline) for outline in sector_outlines(self.cut)]

    def summary(self) -> str:
        """Return the numbers of sectors and locations, and the minimum group size."""
        locations, k = int(self.cut.locations.sum()), self.params.min_k
        return f"{len(self):,} sectors with {locations:,} locations, each of at least {k:,} {self.cut.k_unit}"

    @cached_property
    def sectors(self) -> pa.Table:
        """A row per sector; bounds are meters on the plane of `cut.frame.projection`."""
        columns: dict[str, Any] = {"sector": np.arange(1, len(self) + 1), "locations": self.cut.locations}
        columns |= {self.cut.k_unit: self.cut.people, "area_km2": self.cut.area_km2}
        columns |= {"locations_per_km2": self.cut.density, **dict(zip(BOUNDS, self.cut.bounds.T, strict=True))}
        return pa.table(columns)

    @property
    def suppressed(self) -> int | None:
        """Suppressed locations; None if they are of fewer than min_k people, so that their number is not published."""
        few = 0 < self.cut.suppressed_people < self.params.min_k
        return None if few else self.cut.suppressed

    def lines(self) -> list[str]:
        """Return a summary: sectors, locations, suppression, sizes and densities."""
        k, counts, area = self.params.min_k, self.cut.k_unit, self.cut.area_km2
        order = np.argsort(area, kind="stable")
        share = np.cumsum(self.cut.locations[order]) / self.cut.locations.sum()
        half, most = (area[order[np.searchsorted(share, part)]] for part in (0.5, 0.9))
        suppressed = f"some, of fewer than {k:,} {counts}" if self.suppressed is None else f"{self.suppressed:,}"
        rows = [
            ("sectors", f"{len(self):,}, each with locations of at least {k:,} {counts}"),
            ("locations on the map", f"{int(self.cut.locations.sum()):,}"),
            ("locations suppressed", suppressed),
            ("sector of a location", f"half at most {_rounded(half)} km², nine in ten at most {_rounded(most)} km²"),
            ("locations per km²", f"{_rounded(self.cut.density.min())} to {_rounded(self.cut.density.max())}"),
        ]
        return [f"{name:24}{value}" for name, value in rows]

    def guarantees(self) -> tuple[SectorGuarantee, ...]:
        """Return the guarantees of the map."""
        k = self.params.min_k
        k_anonymity = SectorKAnonymity(k=k, k_unit=self.cut.k_unit)
        return k_anonymity, DisjointSectors(), EveryLocationCounted(k=k), WellFormedSectors()

    def about(self) -> dict[str, Any]:
        """Return the description in the file."""
        k, counts = self.params.min_k, self.cut.k_unit
        return {
            "analysis": NAME,
            "version": __version__,
            "parameters": self.params.model_dump(mode="json"),
            "meaning": f"Every sector has locations of at least {k:,} {counts}, and no two overlap; a location outside all "
            "sectors has fewer, possibly none.",
            "k": k,
            "suppressed_locations": self.suppressed,
            "guarantees": [stated_guarantee(guarantee).plain() for guarantee in self.guarantees()],
        }

    def write(
        self,
        path: str | Path,
        progress: Progress = no_progress,
        *,
        overwrite: bool = False,
        recorded: Recorded | None = None,
        input_options: dict[str, Any] | None = None,
    ) -> None:
        """Write GeoJSON, PNG or HTML by the suffix, or all three and a manifest into a folder, atomically.

        With `recorded` the folder is audited before it is put into place. The manifest states `input_options`.
        """
        path = Path(path)
        if _is_folder(path):
            with ExitStack() as ledger, new_folder(path, overwrite=overwrite, mark_file=GEOJSON) as folder:
                written, checked = self._checked(folder / GEOJSON)
                draw_sectors(written, folder / PNG)
                write_page(written, folder / HTML)
                write_heatmap_manifest(folder, self.about(), self.cut.k_unit, checked, input_options or {})
                if recorded is not None:
                    ledger.enter_context(recorded(folder, self.data))
            return
        if recorded is not None:
            raise OutputError(path, Text("{ledger} records a map with its manifest. Name a folder with {output}."))
        check_output(path, overwrite=overwrite)
        with new_file(path, overwrite=overwrite) as file, scratch_folder() as scratch:
            if path.suffix.lower() in _GEOJSON_ENDINGS:
                self._checked(file)
                return
            draw = draw_sectors if path.suffix.lower() == ".png" else write_page
            draw(self._checked(Path(scratch) / GEOJSON)[0], file)

    def _checked(self, file: Path) -> tuple[WrittenSectors, SectorFindings]:
        """Write the sectors, read the file, and verify the guarantees on it with the original."""
        write_sectors(self.cut, self.about(), file)
        written = read_sectors(file)
        checked = check_sectors(self.guarantees(), written, self.data)
        require_checked(checked)
        return written, checked


def check_output(path: Path, *, overwrite: bool) -> None:
    """Raise unless a map can be written to `path`."""
    if _is_folder(path):
        check_target(path.absolute(), overwrite=overwrite, mark_file=GEOJSON)
    elif path.suffix.lower() not in ENDINGS:
        raise OutputError(
            path,
            Text(
                "Expected a folder, or a name that ends in {endings}. Name another with {output}.",
                endings=" or ".join(ENDINGS),
            ),
        )
    else:
        check_file(path.absolute(), overwrite=overwrite)


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _is_folder(path: Path) -> bool:
    return path.is_dir() or not path.suffix


def run(data: Trajectories, params: HeatMapParams, progress: Progress = no_progress) -> HeatMap:
    """Divide the map into sectors."""
    people = len(np.unique(data.person))
    if people < params.min_k:
        raise InputError(
            Option("min_k"),
            f"Expected at most the {data.k_unit} in the data, {people:,}, got {params.min_k:,}. Choose a smaller one.",
        )
    sectors = k_anonymous_sectors(
        data, params.min_k, params.min_sector_length_m, params.split_above,
        merge=params.merge_sectors, halve=params.halve_long, suppress=params.suppress,
    )  # fmt: skip
    return HeatMap(data, params, sectors)


ANALYSIS = Analysis(
    name=NAME,
    takes=Trajectories,
    params=HeatMapParams,
    run=run,
    doc=__doc__ or "",
    help="Reads original trajectories and writes a map that may be published: every sector has locations of at least --min-k "
    "people, which is verified on the written file. A folder gets heatmap.geojson, heatmap.png, heatmap.html and "
    "manifest.json, which crowdveil verify reads; a name that ends in .geojson, .png or .html gets that one. Without -o a "
    "summary is printed.",
    compares=False,
    check_output=check_output,
    examples=(
        "cabs.csv -o map/",
        "cabs.csv --min-k 10 --min-sector-length-m 250 -o map.geojson",
        "cabs.csv -o map.html",
    ),
)
