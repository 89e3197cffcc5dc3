"""`crowdveil topics RELEASE`, drawn from the record of the analysis."""

from __future__ import annotations

from crowdveil.cli.analyses import command_of

command = command_of("topics")
