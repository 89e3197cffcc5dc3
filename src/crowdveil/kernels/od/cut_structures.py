"""Arrays that travel together through the kernels of cuts at any place, as NamedTuples."""

from __future__ import annotations

from typing import NamedTuple

from crowdveil.kernels._types import Ints

ENDS, CUT = 7, 4
"""Numbers of a piece: where its origins, destinations and flows begin and end in the pool, and its box; those of a cut."""
OF_BOX = 6
"""Place of the box among the numbers of a piece."""
USED, PIECES, LEFTS = 0, 1, 2
"""Places of the counts of `Pieces`."""


class TilePlaces(NamedTuple):
    """Of each tile: its position on both axes, what it costs a trip, and 1 if it counts where areas need a number of tiles."""

    x: Ints
    y: Ints
    cost: Ints
    counts: Ints


class CutFlows(NamedTuple):
    """Flows: tiles, trips and crowd of each, and the people behind it (empty where they are not known).

    k people are needed in each group of flows on its own: a piece of a box is published in the groups that have them. A group is
    a time step where several have the same areas; else all flows are one group. Nobody is listed in two groups.
    """

    origin: Ints
    destination: Ints
    volume: Ints
    crowd: Ints
    group: Ints
    member_offsets: Ints
    member: Ints


class Scratch(NamedTuple):
    """Memory of counts: a number for each person, and one more, the last one that was used; four numbers for each group."""

    seen: Ints
    crowd: Ints
    volume: Ints
    above: Ints
    number: Ints


class CutRules(NamedTuple):
    """Constraints of cuts.

    The smallest crowd; fewest tiles that count in an area (0: any); what deviations count in (0: a trip costs the tiles of its
    areas); what a suppressed trip costs; and the cost that a suppressed trip should save.
    """

    k: int
    tiles: int
    scale: int
    lost_cost: int
    multiplier: float


class BoxContents(NamedTuple):
    """Boxes by their content: offsets and tiles of origins, offsets and tiles of destinations, offsets and flows.

    What a trip of each costs besides its tiles, and the time steps that the trips are spread over.
    """

    origin_offsets: Ints
    origin_tiles: Ints
    destination_offsets: Ints
    destination_tiles: Ints
    flow_offsets: Ints
    flows: Ints
    trip_cost: Ints
    steps: Ints


class Pieces(NamedTuple):
    """Pieces of boxes.

    A pool of tiles and flows; where the origins, destinations and flows of each piece begin and end in it, and its box (seven
    numbers); its published trips, the largest crowd of a group and its cost; its best cut (gain, suppressed trips, axis, place);
    1 if it is published, 0 once it is cut. `left` has the seven numbers of pieces that are cut off: their flows are none, or
    those of crowds below k. Three counts: the numbers in the pool, the pieces, and those that are cut off. The last two
    are those of `BoxContents`.
    """

    pool: Ints
    ends: Ints
    volume: Ints
    crowd: Ints
    cost: Ints
    cut: Ints
    published: Ints
    left: Ints
    counts: Ints
    trip_cost: Ints
    steps: Ints
