"""Match known locations with their times.

The adversary knows some records of a person with their times, at the precision `time_precision`. A person matches with each
known location and time at least as often as known.

Notes
-----
scikit-mobility's code joins year, month, day and, for hours, the month again, so that its hours are days, and its minutes are
those of any hour of the day. Here each precision is that of its name.

References
----------
Pellungrini, Pappalardo, Pratesi and Monreale, A data mining approach to assess privacy risk in human mobility data, 2017.
"""

from crowdveil.attacks.base import TimeParams
from crowdveil.attacks.search import knowledge_attack

ATTACK = knowledge_attack(__name__, "time", "locations with times", TimeParams, "at-least", alias="LocationTimeAttack")
