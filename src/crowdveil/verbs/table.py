"""The kinds of job: for each, what is uploaded, which parameters there are, and how it runs. One file a kind.

A job's parameters are one flat object, as in Python: those of the method, those of reading, and a few of the run. Where an
option of reading names a file, the file is uploaded in a field of that name; a path in a request is never opened.
"""

from __future__ import annotations

from crowdveil.verbs import analyze, anonymize, attack, filter, measure
from crowdveil.verbs.base import Verb

VERBS: dict[str, Verb] = {module.VERB.verb: module.VERB for module in (anonymize, measure, analyze, attack, filter)}
