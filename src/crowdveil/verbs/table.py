"""The verbs that servers run as jobs."""

from __future__ import annotations

from crowdveil.verbs import analyze, anonymize, attack, filter, measure
from crowdveil.verbs.base import Verb

VERBS: dict[str, Verb] = {module.VERB.verb: module.VERB for module in (anonymize, measure, analyze, attack, filter)}
