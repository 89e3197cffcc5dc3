"""Match known locations in their order.

The adversary knows some records of a person in their order, without times. A person matches with the known locations in that
order, with or without other locations between them.

Notes
-----
Records of one time keep the order in which they were read; scikit-mobility leaves it undefined.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import KnowledgeParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(
    __name__, "sequence", "locations in order", KnowledgeParams, "in-order", alias="LocationSequenceAttack"
)
