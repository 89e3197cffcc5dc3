"""Find the columns of trips or flows by their roles."""

from __future__ import annotations

from dataclasses import dataclass, fields

from crowdveil.errors import InputError, Option, ParameterError
from crowdveil.io.columns import describe_columns, find_columns, looks_like_points
from crowdveil.io.notes import ReadNotes
from crowdveil.io.source import Source

ENDS = ("origin", "destination")


@dataclass(frozen=True)
class OdColumns:
    """The input column of each role; None if there is none."""

    origin: str | None = None
    destination: str | None = None
    origin_lon: str | None = None
    origin_lat: str | None = None
    destination_lon: str | None = None
    destination_lat: str | None = None
    time: str | None = None
    user: str | None = None
    volume: str | None = None
    people: str | None = None
    weight: str | None = None

    @property
    def by_id(self) -> bool:
        """Whether origins and destinations are zone ids, not coordinates."""
        return self.origin is not None

    @property
    def zone_ids(self) -> tuple[str, ...]:
        """Columns of zone ids: few different values in many rows."""
        return tuple(c for c in (self.origin, self.destination) if c is not None)

    @property
    def is_flows(self) -> bool:
        """Whether a row is a flow with a volume, not one trip."""
        return self.volume is not None

    def coordinates(self, end: str) -> tuple[str, str]:
        """Return the columns of longitude and latitude of "origin" or "destination"."""
        return getattr(self, f"{end}_lon"), getattr(self, f"{end}_lat")

    @property
    def used(self) -> list[str]:
        """All columns to read."""
        return [c for c in (getattr(self, role) for role in ROLES) if c is not None]


ROLES = tuple(field.name for field in fields(OdColumns))


def find_od_columns(source: Source, named: dict[str, str | None], tiled: bool | None, notes: ReadNotes) -> OdColumns:
    """Find the columns of all roles.

    `tiled` says which zones were chosen: tiles over coordinates, which are needed then while ids are ignored; others (False);
    or none (None). Named coordinates take the place of ids in zones that were chosen; else they are those of the ids, which may
    be stations.
    """
    unknown = [name for name in named if name not in ROLES]
    if unknown:
        raise ParameterError(unknown[0], f"there is no such option; columns are named by {', '.join(ROLES)}.")
    roles = {role: named.get(role) for role in ROLES}
    by_coordinates = bool(tiled) or (roles["origin"] is None and roles["origin_lon"] is not None)
    if tiled is None and by_coordinates:
        # Guessed without a note: that of the stations names both columns.
        by_coordinates = None in find_columns(source, {end: named.get(end) for end in ENDS}, ReadNotes()).values()
    skipped = ENDS if by_coordinates else ROLES[2:6]
    wanted = {r: n for r, n in roles.items() if r not in skipped}
    found = OdColumns(**find_columns(source, wanted, notes))
    if by_coordinates or found.origin is None or found.destination is None:
        found = OdColumns(**find_columns(source, {r: n for r, n in roles.items() if r not in ENDS}, notes))
        missing = [r for r in ROLES[2:6] if getattr(found, r) is None]
        if missing:
            if not any(roles[role] for role in ROLES[:6]) and looks_like_points(source):
                raise InputError(
                    source.name,
                    "wanted trips or flows from an origin to a destination, but it holds points of trajectories; use a method "
                    f"for trajectories, such as microaggregation, or make trips of them with {Option('from_trajectories')}.",
                )
            wanted_text = (
                "coordinates of origin and destination" if by_coordinates else "columns origin and destination"
            )
            asked = [Option(role) for role in (ROLES[2:6] if by_coordinates else ROLES[:2])]
            names = f"{', '.join(map(str, asked[:-1]))} and {asked[-1]}"
            raise InputError(
                source.name, f"wanted {wanted_text}, but {describe_columns(source)}; name them with {names}."
            )
    if found.is_flows and found.weight is not None:
        raise InputError(
            source.name,
            f"wanted volumes or weights, but there are both (columns {found.volume} and {found.weight}); "
            f"weights are for trips, so omit {Option('weight')}.",
        )
    return found
