"""Match known locations, each at least as often as known.

The adversary knows some records of a person without their times. A person matches with each known location at least as often as
known.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import KnowledgeParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(__name__, "location", "locations", KnowledgeParams, "at-least", alias="LocationAttack")
