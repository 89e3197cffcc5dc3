"""Start a process of a command in less time: what is not used, or not yet, is not imported and not made."""

from __future__ import annotations

from crowdveil.startup.lazy_records import parse_types_later, write_methods_later
from crowdveil.startup.unused_imports import leave_out_unused


def start_quickly() -> None:
    """Have this process import and make only what it uses."""
    leave_out_unused()
    write_methods_later()
    parse_types_later()
