"""Match known locations with their proportions of visits.

The adversary knows some distinct locations of a person, and the visits to each in proportion to the most visited known one. A
person matches with all known locations, each with a proportion p such that the known one is from p − tolerance · p to
p + tolerance · p.

Notes
-----
With a tolerance, more known locations may make a group larger, since another location may then be the most visited one. Exactly
`knowledge` locations are known, as in scikit-mobility; in a release, where known ones may be missing, up to that number.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import ToleranceParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(
    __name__,
    "proportion",
    "locations in proportion",
    ToleranceParams,
    "proportion",
    "counts",
    alias="LocationProportionAttack",
)
