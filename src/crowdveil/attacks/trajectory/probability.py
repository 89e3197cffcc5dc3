"""Match known locations with their shares of all visits.

The adversary knows some distinct locations of a person, and the share of all visits to each. A person matches if the share p at
each known location is such that the known one is from p − tolerance · p to p + tolerance · p.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import ToleranceParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(
    __name__,
    "probability",
    "locations with probabilities",
    ToleranceParams,
    "within",
    "shares",
    alias="LocationProbabilityAttack",
)
