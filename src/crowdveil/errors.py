"""Errors as data: a code, a subject and a message, which each interface renders in its own words.

    CrowdveilError
    ├── InputError          unusable data: file, column, row                       exit code 2
    ├── ParameterError      a wrong parameter, option or run file                  exit code 2
    ├── OutputError         a target that exists, is not writable, or is full      exit code 2
    ├── MissingExtraError   an optional dependency is not installed                exit code 2
    └── GuaranteeViolatedError  a release violates one of its guarantees           exit code 1

A message says what was expected, what was found, and what to do. It names files, columns, parameters, row numbers and counts,
and never a value of the data. It refers to a parameter by a field, never by its spelling:
`Text("allow more with {suppress}")` is `--suppress` on the command line, `suppress=` in Python and a label on the page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from string import Formatter
from typing import Any

ROWS_NAMED = 5


@dataclass(frozen=True)
class Option:
    """Refer to a parameter: an argument in Python, an option on the command line, a field in a form."""

    name: str
    value: str = ""


@dataclass(frozen=True)
class Name:
    """Refer to a file, folder, column, method or address; every interface names it alike."""

    name: str


Reference = Option | Name | Path
"""A part of a message that each interface names in its own way. The service shows only the last part of a path."""
Naming = Callable[[Reference], str]


@dataclass(frozen=True)
class Subject:
    """What a sentence is about, in front of it, as in "k: Expected …"."""

    of: Reference


Part = str | Reference | Subject


class Text(tuple[Part, ...]):
    """A sentence as data: words and references.

    `Text("Allow {most:,} trips with {suppress}.", most=n)` is a template with fields. A field without a value is a
    parameter. References and other texts are kept; any other value is formatted.
    """

    __slots__ = ()

    def __new__(cls, template: str, /, **fields: object) -> Text:
        """Fill in a template."""
        parts: list[Part] = []
        for words, field, form, _ in Formatter().parse(template):
            parts.append(words)
            if field is not None:
                value = fields.get(field, Option(field))
                parts += _parts(value if isinstance(value, Reference | Subject | Text) else format(value, form or ""))
        return cls.of(parts)

    @classmethod
    def of(cls, parts: Iterable[Part]) -> Text:
        """Return the text with these parts."""
        joined: list[Part] = []
        for part in parts:
            last = joined[-1] if joined else None
            if isinstance(part, str) and isinstance(last, str):
                joined[-1] = last + part
            elif part != "":
                joined.append(part)
        return super().__new__(cls, joined)

    def __reduce__(self) -> Any:
        """Pickle the parts."""
        return type(self).of, (tuple(self),)

    def __str__(self) -> str:
        """Return the sentence as Python says it."""
        return render(self, as_argument)

    def shortened(self, most: int) -> Text:
        """Return at most `most` characters of the text, with "…" if it was longer. References are never cut."""
        kept: list[Part] = []
        for part in self:
            size = len(render([part], as_field))
            if size > most:
                return Text.of([*kept, part[:most] if isinstance(part, str) else "", "…"])
            kept.append(part)
            most -= size
        return self


def _parts(message: object) -> tuple[Part, ...]:
    if isinstance(message, Text):
        return message
    return (message if isinstance(message, Reference | Subject) else str(message),)


def render(text: Iterable[Part], naming: Naming) -> str:
    """Return a text for reading, with its references named as `naming` says."""
    return printable("".join(_rendered(part, naming) for part in text))


_CONTROLS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) != "\t"}


def printable(text: str) -> str:
    """Replace control characters: names in files from strangers must not steer the terminal or forge lines of a log."""
    return text.translate(_CONTROLS)


def _rendered(part: Part, naming: Naming) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Subject):
        return naming(part)
    # Python names a wrong argument without its sign: "k: Expected …", and not "k=: Expected …".
    return f"{naming(part.of).removesuffix('=') if isinstance(part.of, Option) else naming(part.of)}: "


def as_argument(part: Reference) -> str:
    """Name a parameter as Python does: `suppress=`, `engine="spark"`."""
    if not isinstance(part, Option):
        return _named(part)
    return f'{part.name}="{part.value}"' if part.value else f"{part.name}="


def as_command_line(part: Reference) -> str:
    """Name a parameter as the command line does: `--suppress`, `--engine spark`."""
    if not isinstance(part, Option):
        return _named(part)
    option = "-o" if part.name == "output" else "--" + part.name.replace("_", "-")
    return f"{option} {part.value}".rstrip()


def as_field(part: Reference) -> str:
    """Name a parameter as the API does: `suppress`, `engine spark`; and a path by its last part."""
    return f"{part.name} {part.value}".rstrip() if isinstance(part, Option) else part.name


def _named(part: Name | Path) -> str:
    return part.name if isinstance(part, Name) else str(part)


class CrowdveilError(Exception):
    """An error that a user sees as a short message.

    Attributes
    ----------
    code
        The kind of error, for programs.
    subject
        The wrong parameter, file, folder, column or method, as in `InputError(path, "there is no such file.")`.
    reason
        The message without the subject.
    text
        Subject and message as they are stored and sent.
    """

    code = "failed"
    exit_code = 2

    def __init__(self, *subjects_and_message: object) -> None:
        *subjects, message = subjects_and_message
        named = [Subject(s if isinstance(s, Reference) else Name(str(s))) for s in subjects]
        self._set(Text.of([*named, *_parts(message)]))

    def _set(self, text: Text) -> None:
        Exception.__init__(self, text)
        self.text, self.subject, self.reason = text, None, text
        match text:
            case Subject(subject), *rest:
                self.subject, self.reason = subject, Text.of(rest)

    @property
    def message(self) -> str:
        """The sentence as the API says it."""
        return render(self.text, as_field)

    @classmethod
    def from_text(cls, text: Text) -> CrowdveilError:
        """Return the error with this text, whatever the arguments of its constructor."""
        error = cls.__new__(cls)
        error._set(text)
        return error

    def __reduce__(self) -> Any:
        """Pickle the text."""
        return type(self).from_text, (self.text,)

    def about(self, subject: Reference) -> CrowdveilError:
        """Return the error with another subject."""
        return type(self).from_text(Text.of([Subject(subject), *self.reason]))

    def refers_to(self, name: str) -> bool:
        """Return whether the text refers to a parameter."""
        return any(isinstance(part, Option) and part.name == name for part in self.text)

    def __str__(self) -> str:
        """Return the sentence as Python says it."""
        return str(self.text)


class InputError(CrowdveilError):
    """Unusable data."""

    code = "bad_input"


class EmptyInputError(InputError):
    """Data without a usable row, or without a volume; `units` is the lost weight, in units of weights."""

    def __init__(self, *subjects_and_message: object, units: int = 0) -> None:
        super().__init__(*subjects_and_message)
        self.units = units


class TimeStepError(InputError):
    """Unusable data of one time step: its number from 1, the number of time steps, and the reason."""

    def __init__(self, step: int, steps: int, reason: object) -> None:
        super().__init__(f"time step {step:,} of {steps:,}", reason)
        self.step, self.steps = step, steps


class ParameterError(CrowdveilError):
    """A wrong parameter, option or run file."""

    code = "bad_parameter"


class OutputError(CrowdveilError):
    """A target that exists, is full, or cannot be written."""

    code = "bad_output"


class MissingExtraError(CrowdveilError):
    """A missing optional dependency."""

    code = "not_installed"

    def __init__(self, package: str, extra: str, purpose: str | Option) -> None:
        super().__init__(
            Text(
                "{purpose} needs the package {package}: install it with pip install 'crowdveil[{extra}]', "
                "or in a checkout with pip install '.[{extra}]'.",
                purpose=purpose,
                package=package,
                extra=extra,
            )
        )


def import_extra(module: str, package: str, extra: str, purpose: str | Option) -> Any:
    """Import a module of an optional dependency; raise if it is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtraError(package, extra, purpose) from None


class GuaranteeViolatedError(CrowdveilError):
    """A release violates one of its guarantees; nothing was published."""

    code = "guarantee_violated"
    exit_code = 1


NO_MEMORY = "Not enough memory. Use less data, or a machine with more memory."
TOO_DEEP = "A file is nested too deeply to be read. Write it again."
"""Messages for Python errors that a user can cause."""


class CrowdveilWarning(UserWarning):
    """A note from reading data, as a Python warning: an assumption, or dropped rows. It has no value of the data."""


ERRORS: dict[str, type[CrowdveilError]] = {
    kind.code: kind for kind in (InputError, ParameterError, OutputError, MissingExtraError, GuaranteeViolatedError)
}
"""Errors by their code."""


def as_json(code: str, text: str | Text) -> dict[str, Any]:
    """Return an error for a form or a program: `message` is a sentence, `parts` separates its words from its references."""
    error = CrowdveilError.from_text(Text.of(_parts(text)))
    subject = None if error.subject is None else _described(Subject(error.subject))
    return {"code": code, "subject": subject, "message": error.message, "parts": parts_of(error.text)}


def from_json(error: Any) -> CrowdveilError:
    """Return the error that `as_json` describes."""
    return ERRORS.get(str(error["code"]), ParameterError).from_text(text_of(error.get("parts") or [error["message"]]))


def parts_of(text: str | Text) -> list[str | dict[str, Any]]:
    """Return a text as JSON; a path is named by its last part."""
    return [part if isinstance(part, str) else _described(part) for part in _parts(text)]


def text_of(parts: Iterable[Any]) -> Text:
    """Return the text that `parts_of` describes."""
    return Text.of(part if isinstance(part, str) else _reference(part) for part in parts)


def _described(part: Reference | Subject) -> dict[str, Any]:
    if isinstance(part, Subject):
        return _described(part.of) | {"subject": True}
    value = {"kind": "option", "value": part.value} if isinstance(part, Option) else {"kind": "name", "value": ""}
    return {"subject": False, "name": part.name} | value


def _reference(part: Any) -> Reference | Subject:
    named = Option(str(part["name"]), str(part["value"])) if part["kind"] == "option" else Name(str(part["name"]))
    return Subject(named) if part.get("subject") else named


def internal_error(error: BaseException) -> str:
    """Return the sentence for an error that no user can cause. Its own message is left out: it may hold data."""
    return f"internal error ({type(error).__name__}); please report it to the operator of the server."


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Return `n` with its noun, as in "1 row" or "2,500 rows"."""
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


_SINGULAR = {"have": "has", "are": "is", "name": "names", "repeat": "repeats"}


def rows_that(rows: Iterable[int], total: int, reason: str) -> str:
    """Return rows with a reason, as in "1 row (row 2) has no time" for the reason "have no time"."""
    return f"{rows_named(rows, total)} {reason_for(total, reason)}"


def reason_for(total: int, reason: str) -> str:
    """Return a reason with the verb for a number of rows: "has no time" for one row, "have no time" for more."""
    verb, _, rest = reason.partition(" ")
    return f"{_SINGULAR.get(verb, verb) if total == 1 else verb} {rest}"


def rows_named(rows: Iterable[int], total: int) -> str:
    """Return the first few row numbers of `total` bad rows, as in "3 rows (rows 2, 7 and 9)"."""
    first = [f"{r:,}" for _, r in zip(range(ROWS_NAMED), rows, strict=False)]
    if not first:
        return counted(total, "row")
    if total > len(first):
        return f"{counted(total, 'row')} (first: {', '.join(first)})"
    listed = first[0] if len(first) == 1 else f"{', '.join(first[:-1])} and {first[-1]}"
    return f"{counted(total, 'row')} ({'row' if total == 1 else 'rows'} {listed})"
