"""Match distinct known locations.

The adversary knows some distinct locations of a person. A person matches who has them all.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import KnowledgeParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(
    __name__,
    "unique-location",
    "different locations",
    KnowledgeParams,
    "at-least",
    "counts",
    alias="UniqueLocationAttack",
)
