"""Errors as data: a code, a subject and a message, which each interface renders in its own words.

    CrowdveilError
    ├── InputError          data that cannot be used: file, column, row            exit code 2
    ├── ParameterError      a parameter, an option or a run file that is wrong     exit code 2
    ├── OutputError         a target that exists, is not writable, or is full      exit code 2
    ├── MissingExtraError   an optional dependency is not installed                exit code 2
    └── GuaranteeViolatedError  a release violates one of its guarantees           exit code 1

A message is one sentence: what is wrong, what was expected, what to do. It names files, columns, parameters,
row numbers and counts, and never a value of the data. It refers to a parameter by an `Option`, never by its spelling:
`f"allow more with {Option('suppress')}"` is `--suppress` on the command line, `suppress=` in Python and a label on the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

ROWS_NAMED = 5
# Private-use characters delimit references inside a message, so that no text can be mistaken for one.
_OPTION, _NAME, _END = "\ue000", "\ue001", "\ue002"
_REFERENCE = f"([{_OPTION}{_NAME}])([^{_OPTION}-{_END}]*){_END}"


@dataclass(frozen=True)
class Option:
    """Refer to a parameter: an argument in Python, an option on the command line, a field in a form."""

    name: str
    value: str = ""

    def __str__(self) -> str:
        """Return the reference as it stands in a message."""
        return f"{_OPTION}{self.name}{'=' * bool(self.value)}{self.value}{_END}"


@dataclass(frozen=True)
class Name:
    """Refer to a file, folder, column, method or address, which has the same name everywhere."""

    name: str
    value: ClassVar[str] = ""

    def __str__(self) -> str:
        """Return the reference as it stands in a message."""
        return f"{_NAME}{self.name}{_END}"


Part = str | Option | Name
Naming = Callable[[Option], str]


def parts_of(text: str) -> list[Part]:
    """Split a text at its references."""
    parts: list[Part] = []
    at = 0
    for found in re.finditer(_REFERENCE, text):  # compiled here, since few commands have a message
        parts.append(text[at : found.start()])
        name, _, value = found[2].partition("=")
        parts.append(Option(name, value) if found[1] == _OPTION else Name(found[2]))
        at = found.end()
    return [part for part in (*parts, text[at:]) if part]


def render(text: str, naming: Naming) -> str:
    """Return a text with its references named as `naming` says."""
    return "".join(
        naming(part) if isinstance(part, Option) else part.name if isinstance(part, Name) else part
        for part in parts_of(text)
    )


def shortened(text: str, most: int) -> str:
    """Return a text of at most `most` characters (2 or more) in which no reference is cut in half."""
    if len(text) <= most:
        return text
    kept = text[: most - 2]
    option, name, end = (kept.rfind(mark) for mark in (_OPTION, _NAME, _END))
    if option > max(name, end):  # half of a parameter's name would be another parameter
        return f"{kept[:option]}…"
    return f"{kept}…{_END if name > end else ''}"


def as_argument(option: Option) -> str:
    """Name a parameter as Python does: `suppress=`, `engine="spark"`."""
    return f'{option.name}="{option.value}"' if option.value else f"{option.name}="


def as_command_line(option: Option) -> str:
    """Name a parameter as the command line does: `--suppress`, `--engine spark`."""
    spelled = "-o" if option.name == "output" else "--" + option.name.replace("_", "-")
    return f"{spelled} {option.value}".rstrip()


def as_field(option: Option) -> str:
    """Name a parameter as the API does: `suppress`, `engine spark`."""
    return f"{option.name} {option.value}".rstrip()


class CrowdveilError(Exception):
    """Everything that is reported to a user in one sentence.

    Attributes
    ----------
    code
        The kind of error, for programs.
    subject
        The parameter, file, folder, column or method that is wrong, as in `InputError(path, "there is no such file.")`.
    reason
        What is wrong with it.
    text
        Subject and message as they are stored and sent: one text with references.
    """

    code = "failed"
    exit_code = 2

    def __init__(self, *said: object) -> None:
        *subject, message = said
        self._set(
            ": ".join(
                [*(str(part if isinstance(part, Option | Name) else Name(str(part))) for part in subject), str(message)]
            )
        )

    def _set(self, text: str) -> None:
        Exception.__init__(self, text)
        self.text = text
        first, *rest = parts_of(text) or [""]
        is_subject = not isinstance(first, str) and bool(rest) and str(rest[0]).startswith(": ")
        self.subject = first if is_subject and not isinstance(first, str) else None
        self.reason = "".join(map(str, rest)).removeprefix(": ") if is_subject else text

    @property
    def message(self) -> str:
        """The sentence as the API says it."""
        return render(self.text, as_field)

    @classmethod
    def from_text(cls, text: str) -> CrowdveilError:
        """Return the error that has this text, whatever the constructor takes."""
        error = cls.__new__(cls)
        error._set(text)
        return error

    def __reduce__(self) -> Any:
        """Pickle the text."""
        return type(self).from_text, (self.text,)

    def refers_to(self, name: str) -> bool:
        """Whether the text refers to a parameter."""
        return any(isinstance(part, Option) and part.name == name for part in parts_of(self.text))

    def __str__(self) -> str:
        """Return the sentence as Python says it."""
        parts = parts_of(self.text)
        return "".join(
            # An argument that is wrong is named without its sign: "k: Expected …", and not "k=: Expected …".
            part.name
            if isinstance(part, Option) and str(after).startswith(": ") and not part.value
            else render(str(part), as_argument)
            for part, after in zip(parts, [*parts[1:], ""], strict=True)
        )


class Reason(str):
    """The sentence of an error that was not raised, as Python says it; `reason_as` says it for other interfaces."""

    text: str

    def __new__(cls, error: CrowdveilError) -> Reason:
        """Keep the text with its references."""
        made = super().__new__(cls, error)
        made.text = error.text
        return made


def reason_as(reason: str, naming: Naming) -> str:
    """Return a reason with its parameters named as `naming` says."""
    return render(reason.text, naming) if isinstance(reason, Reason) else reason


class InputError(CrowdveilError):
    """Data that cannot be used."""

    code = "bad_input"


class EmptyInputError(InputError):
    """Data without a usable row, or without a volume; `units` is the weight that is lost, in units of weights."""

    def __init__(self, *said: object, units: int = 0) -> None:
        super().__init__(*said)
        self.units = units


class TimeStepError(InputError):
    """Data of one time step that cannot be used: its number from 1, the number of time steps, and what is wrong."""

    def __init__(self, step: int, steps: int, reason: str) -> None:
        super().__init__(f"time step {step:,} of {steps:,}", reason)
        self.step, self.steps = step, steps


class ParameterError(CrowdveilError):
    """A parameter, an option or a run file that is wrong."""

    code = "bad_parameter"


class OutputError(CrowdveilError):
    """A target that cannot be written."""

    code = "bad_output"


class MissingExtraError(CrowdveilError):
    """An optional dependency that the call needs is not installed."""

    code = "not_installed"

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package}: install it with pip install 'crowdveil[{extra}]', "
            f"or in a checkout with pip install '.[{extra}]'."
        )


def import_extra(module: str, package: str, extra: str, purpose: str) -> Any:
    """Import a module of an optional dependency; raise if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None


class GuaranteeViolatedError(CrowdveilError):
    """A release violates one of its guarantees; nothing was published."""

    code = "guarantee_violated"
    exit_code = 1


NO_MEMORY = "There is not enough memory for this; use less data, or a machine with more."
TOO_DEEP = "a file is nested too deep to be read; write it again."
"""Sentences for errors of Python that a user can cause."""


class CrowdveilWarning(UserWarning):
    """A note of reading data that Python shows: an assumption, or dropped rows. It holds no value of the data."""


ERRORS: dict[str, type[CrowdveilError]] = {
    kind.code: kind for kind in (InputError, ParameterError, OutputError, MissingExtraError, GuaranteeViolatedError)
}
"""Errors by their code."""


def as_json(code: str, text: str) -> dict[str, Any]:
    """Return an error for a form or a program: `message` names fields, `parts` has them apart."""
    subject = CrowdveilError.from_text(text).subject
    return {
        "code": code,
        "subject": None if subject is None else _part(subject),
        "message": render(text, as_field),
        "parts": [_part(part) for part in parts_of(text)],
    }


def from_json(error: Any) -> CrowdveilError:
    """Return the error that `as_json` describes."""
    parts = [part if isinstance(part, str) else _reference(part) for part in error.get("parts") or [error["message"]]]
    return ERRORS.get(str(error["code"]), ParameterError).from_text("".join(map(str, parts)))


def _part(part: Part) -> str | dict[str, str]:
    if isinstance(part, str):
        return part
    return {"kind": "option" if isinstance(part, Option) else "name", "name": part.name, "value": part.value}


def _reference(part: Any) -> Option | Name:
    return Option(str(part["name"]), str(part["value"])) if part["kind"] == "option" else Name(str(part["name"]))


def internal_error(error: BaseException) -> str:
    """Return the sentence for an error that no user can cause, without its message, which may hold data."""
    return f"internal error ({type(error).__name__}); please report it to the operator of the server."


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Return `n` with its noun, as in "1 row" or "2,500 rows"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


_OF_ONE = {"have": "has", "are": "is", "name": "names", "repeat": "repeats"}


def rows_that(rows: Iterable[int], total: int, reason: str) -> str:
    """Return rows with what is wrong with them, as in "1 row (row 2) has no time" for the reason "have no time"."""
    return f"{rows_named(rows, total)} {said_of(total, reason)}"


def said_of(total: int, reason: str) -> str:
    """Return a reason with the verb for so many rows: "has no time" of one row, "have no time" of more."""
    verb, _, rest = reason.partition(" ")
    return f"{_OF_ONE.get(verb, verb) if total == 1 else verb} {rest}"


def rows_named(rows: Iterable[int], total: int) -> str:
    """Return the first few row numbers of `total` bad rows, as in "3 rows (rows 2, 7 and 9)"."""
    first = [f"{r:,}" for _, r in zip(range(ROWS_NAMED), rows, strict=False)]
    if not first:
        return counted(total, "row")
    if total > len(first):
        return f"{counted(total, 'row')} (first: {', '.join(first)})"
    listed = first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
    return f"{counted(total, 'row')} ({'row' if total == 1 else 'rows'} {listed})"
