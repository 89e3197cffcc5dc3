"""Match known locations with their numbers of visits.

The adversary knows some distinct locations of a person, and the visits to each. A person matches if the frequency f at each
known location is such that the known one is from f − tolerance · f to f + tolerance · f.

Notes
-----
The interval is around the frequency of the candidate, not around the known one, as in scikit-mobility's code.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import ToleranceParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(
    __name__,
    "frequency",
    "locations with frequencies",
    ToleranceParams,
    "within",
    "counts",
    alias="LocationFrequencyAttack",
)
