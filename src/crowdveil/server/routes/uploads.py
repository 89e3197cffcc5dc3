"""Forms with files, written to disk as they arrive and never held in memory; limits hold while it comes in."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import ClientDisconnect, Request

from crowdveil.errors import CrowdveilError, InputError, Option
from crowdveil.io.archive import check_archive
from crowdveil.server.answers import ApiError
from crowdveil.server.queue.files import safe_name, sync_file
from crowdveil.server.queue.job import sendable
from crowdveil.server.routes.table_limits import count_rows
from crowdveil.server.settings import Service
from crowdveil.server.tokens import Caller

TEXT_MOST = 1 << 20
"""Bytes of all fields of a form that are no files."""
MAX_BOUNDARY = 256
"""Bytes of the boundary of a form; older versions of the parser take longer ones."""
PARTS_MOST = 64
DEPTH_MOST = 32
"""How deep JSON may be nested."""
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)  # it quotes what came in


@dataclass
class Form:
    """What came in: texts by field, and names of files by field."""

    texts: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)


@dataclass
class _Part:
    """A part of a form that is being read."""

    headers: dict[str, bytes] = field(default_factory=dict)
    name: str = ""
    file: BinaryIO | None = None
    filename: str = ""
    text: bytearray = field(default_factory=bytearray)
    rows: int = 0
    first_line: int = 0
    ended_first: bool = False


class _Receiver:
    """Takes the events of the parser."""

    def __init__(
        self, folder: Path, fields: dict[str, tuple[str, ...]], texts: tuple[str, ...], rows_most: int
    ) -> None:
        self.folder, self.fields, self.texts, self.rows_most = folder, fields, texts, rows_most
        self.form, self.part, self.parts, self.text_bytes = Form(), _Part(), 0, 0
        self.header_name, self.header_value = b"", b""
        self.ended = False

    def callbacks(self) -> dict[str, Any]:
        return {
            "on_part_begin": self.begin, "on_header_field": self.header_field, "on_header_value": self.header_text,
            "on_header_end": self.header_end, "on_headers_finished": self.open, "on_part_data": self.data,
            "on_part_end": self.close, "on_end": self.end,
        }  # fmt: skip

    def begin(self) -> None:
        self.part, self.parts = _Part(), self.parts + 1
        if self.parts > PARTS_MOST:
            raise ApiError(413, "too_large", f"the form has more than {PARTS_MOST} parts; send fewer.")

    def header_field(self, data: bytes, start: int, end: int) -> None:
        self.header_name += data[start:end]

    def header_text(self, data: bytes, start: int, end: int) -> None:
        self.header_value += data[start:end]

    def header_end(self) -> None:
        self.part.headers[self.header_name.decode("latin-1").lower()] = self.header_value
        self.header_name, self.header_value = b"", b""

    def open(self) -> None:
        """Decide what a part is from its headers."""
        _, options = parse_options_header(self.part.headers.get("content-disposition", b""))
        name = options.get(b"name", b"").decode("utf-8", "replace")
        if name not in self.fields and name not in self.texts:
            name = name.lower()  # mdl-anonymizer's document writes Input_dataset
        self.part.name = name
        if name not in self.fields and name not in self.texts:
            known = ", ".join([*self.fields, *self.texts])
            raise ApiError(422, "bad_form", f"the form has a field that means nothing here; known are {known}.")
        if name in self.form.files or name in self.form.texts:
            raise ApiError(422, "bad_form", Option(name), "the field stands twice in the form; send it once.")
        if name in self.texts:
            return
        if b"filename" not in options:
            raise ApiError(
                422, "bad_form", Option(name), "wanted a file in this field of the form; add it with its name."
            )
        given = options[b"filename"].decode("utf-8", "replace")
        self.part.filename = checked_name(given, name, self.fields[name], self.form.files.values())
        self.part.file = (self.folder / self.part.filename).open("xb")

    def data(self, data: bytes, start: int, end: int) -> None:
        part, piece = self.part, data[start:end]
        if part.file is None:
            self.text_bytes += len(piece)
            if self.text_bytes > TEXT_MOST:
                raise ApiError(413, "too_large", Option(part.name), f"wanted at most {TEXT_MOST >> 20} MiB of text.")
            part.text += piece
            return
        count_rows(part, part.filename, piece, self.rows_most)
        part.file.write(piece)

    def close(self) -> None:
        part = self.part
        if part.file is None:
            try:
                text = part.text.decode("utf-8-sig")
            except UnicodeDecodeError:
                raise ApiError(422, "bad_form", Option(part.name), "wanted text in UTF-8.") from None
            self.form.texts[part.name] = text
            return
        part.file.close()
        self.form.files[part.name] = part.filename

    def end(self) -> None:
        self.ended = True

    def give_up(self) -> None:
        if self.part.file is not None:
            self.part.file.close()


def checked_name(given: str, field: str, endings: tuple[str, ...], taken: Iterable[str] = (), *, of: str = "") -> str:
    """Return a name for an uploaded file; raise unless its own has one of the endings. The error is of `of`, or of the field."""
    safe = safe_name(given, field, endings, tuple(taken))
    if safe is None:
        raise ApiError(415, "bad_type", Option(of or field), f"wanted a file whose name ends in {', '.join(endings)}.")
    return safe


def no_space() -> ApiError:
    """Return the refusal of an upload for which there is no space on the disk."""
    return ApiError(507, "no_space", "the disk of the server is full; delete jobs, or ask its operator.")


def check_space(service: Service, size: int) -> None:
    """Refuse an upload of this many bytes before it comes in where the disk has no space for it."""
    if not service.has_room(size):
        raise no_space()


def make_upload_folder(request: Request, service: Service, job: str) -> Path:
    """Make the folder of an upload; refuses it before it comes in where the disk has no space for it."""
    declared = request.headers.get("content-length", "")
    check_space(service, int(declared) if declared.isdecimal() and len(declared) < 20 else 0)
    try:
        return service.files.receive(job)
    except OSError:
        raise no_space() from None


async def receive(
    request: Request,
    folder: Path,
    fields: dict[str, tuple[str, ...]],
    texts: tuple[str, ...],
    who: Caller,
) -> Form:
    """Write the files of a form to a folder; its fields are known beforehand, with the endings of names."""
    most = who.limits.upload_bytes
    kind, options = parse_options_header(request.headers.get("content-type", "").encode())
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise ApiError(
            415, "bad_type", Option("content_type"), "wanted a form (multipart/form-data) with files, and a boundary."
        )
    too_large = ApiError(413, "too_large", f"wanted at most {most >> 20:,} MiB in one request; send less data.")
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise too_large
    taker, came = _Receiver(folder, fields, texts, who.limits.max_rows), 0
    try:
        if len(options[b"boundary"]) > MAX_BOUNDARY:
            raise FormParserError("the boundary is too long")
        parser = MultipartParser(options[b"boundary"], taker.callbacks())  # type: ignore[arg-type]
        async for piece in request.stream():
            came += len(piece)
            if came > most:
                raise too_large
            parser.write(piece)
        parser.finalize()
    except FormParserError:
        sentence = "form: it is broken, or its boundary is too long; send it again."
        raise ApiError(400, "bad_form", sentence) from None
    except ClientDisconnect:
        raise ApiError(400, "bad_form", "form", "it ended too early; send it again.") from None
    except OSError:
        raise no_space() from None
    finally:
        taker.give_up()
    if not taker.ended:
        raise ApiError(400, "bad_form", "form", "it ended too early; send it again.")
    return taker.form


def check_files(form: Form, folder: Path, most: int) -> None:
    """See files onto the disk, and look at those that libraries would follow to anywhere, or unpack without end."""
    for name in form.files.values():
        path = folder / name
        sync_file(path)
        with path.open("rb") as file:
            head = file.read(1024)
        ending = path.suffix.lower()
        if ending == ".zip":
            check_archive(path, name, most)
        elif ending in (".geojson", ".json"):
            if not head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"[")):
                raise _no_zones(name)
        elif ending == ".gpkg" and not head.startswith(b"SQLite format 3\0"):
            raise _no_zones(name)


def _no_zones(name: str) -> CrowdveilError:
    return InputError(name, "the file is broken or holds no zones; wanted GeoJSON or GeoPackage.")


def parsed(text: str, name: str) -> dict[str, Any]:
    """An object of JSON that came with a request."""
    try:
        values = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise ApiError(422, "bad_form", Option(name), "wanted valid JSON; fix it.") from None
    if not isinstance(values, dict) or _depth(values) > DEPTH_MOST:
        raise ApiError(422, "bad_form", Option(name), "wanted an object of names and values.")
    if sendable(values) != values:
        raise ApiError(
            422, "bad_text", Option(name), "the text has a NUL character or half of a surrogate pair; remove it."
        )
    return values


def _depth(value: Any) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + max((_depth(v) for v in inner if isinstance(v, dict | list)), default=0)


def _refuse_constant(_name: str) -> Any:
    raise ValueError
