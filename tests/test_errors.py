from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from string import Formatter
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from serving import Within, opened

import crowdveil
from crowdveil.cli.main import cli
from crowdveil.errors import (
    CrowdveilError,
    InputError,
    MissingExtraError,
    Name,
    Option,
    ParameterError,
    Text,
    TimeStepError,
    as_command_line,
    as_field,
    as_json,
    counted,
    from_json,
    printable,
    render,
    rows_named,
    rows_that,
)
from crowdveil.registry import find_method
from crowdveil.server.app import make_app


@pytest.mark.parametrize(
    ("rows", "total", "text"),
    [
        ([2], 1, "1 row (row 2)"),
        ([2, 7, 9], 3, "3 rows (rows 2, 7 and 9)"),
        ([1, 2, 3, 4, 5], 2500, "2,500 rows (first: 1, 2, 3, 4, 5)"),
        ([], 4, "4 rows"),
    ],
)
def test_rows_are_named(rows: list[int], total: int, text: str) -> None:
    assert rows_named(rows, total) == text


def test_verbs_agree_with_numbers() -> None:
    assert rows_that([2], 1, "have no time in column t") == "1 row (row 2) has no time in column t"
    assert rows_that([2, 3], 2, "are below zero") == "2 rows (rows 2 and 3) are below zero"
    assert rows_that([4], 1, "name no zone") == "1 row (row 4) names no zone"


def test_counted() -> None:
    assert counted(1, "row") == "1 row" and counted(2, "trajectory", "trajectories") == "2 trajectories"


class TestText:
    error = InputError(
        Path("in/a=b{k}.csv"), Text("too few rows; allow more with {suppress}, or {step}.", step=Option("step", "1h"))
    )

    def test_each_interface_has_its_own_names(self) -> None:
        assert str(self.error) == 'in/a=b{k}.csv: too few rows; allow more with suppress=, or step="1h".'
        assert render(self.error.text, as_command_line) == (
            "in/a=b{k}.csv: too few rows; allow more with --suppress, or --step 1h."
        )
        assert self.error.message == "a=b{k}.csv: too few rows; allow more with suppress, or step 1h."

    def test_a_wrong_argument_is_named_without_its_sign(self) -> None:
        error = ParameterError(Option("min_tiles"), "Expected a number of at least 1.")
        assert str(error) == "min_tiles: Expected a number of at least 1."
        assert render(error.text, as_command_line) == "--min-tiles: Expected a number of at least 1."
        assert render(Text("name another with {output}"), as_command_line) == "name another with -o"

    def test_fields_are_formatted_and_texts_are_joined(self) -> None:
        inner = Text("or {k}")
        text = Text("{n:,} trips of {share:.0%}, {inner}; {{}}", n=1200, share=0.5, inner=inner)
        assert text == ("1,200 trips of 50%, or ", Option("k"), "; {}")
        assert Text.of(["a", "b", "", Option("k")]) == ("ab", Option("k"))
        assert not Text("") and Text.of([]) == Text("")

    def test_a_value_is_not_read_as_a_template(self) -> None:
        assert Text("column {column}", column="{k}") == ("column {k}",)

    def test_subject_and_reason_are_data(self) -> None:
        assert self.error.subject == Path("in/a=b{k}.csv") and self.error.code == "bad_input"
        assert self.error.refers_to("suppress") and not self.error.refers_to("k")
        assert str(self.error.about(Name("it"))) == 'it: too few rows; allow more with suppress=, or step="1h".'
        assert InputError("release: no subject").subject is None and InputError("").subject is None
        assert InputError(Text("{step} needs times.")).subject is None

    @pytest.mark.parametrize(
        "error",
        [
            error.about(Name("a=b{k}.csv")),
            ParameterError("joint", Option("k"), "bad."),
            MissingExtraError("x", "y", "z"),
            TimeStepError(2, 7, error.reason),
        ],
    )
    def test_it_crosses_processes_and_the_api_as_it_was(self, error: CrowdveilError) -> None:
        pickled = pickle.loads(pickle.dumps(error))
        assert type(pickled) is type(error) and pickled.text == error.text and pickled.subject == error.subject
        sent = from_json(json.loads(json.dumps(as_json(error.code, error.text))))
        assert isinstance(error, type(sent)) and sent.text == error.text and sent.subject == error.subject

    def test_a_message_of_another_server_is_read_too(self) -> None:
        assert str(from_json({"code": "new", "message": "k: wrong."})) == "k: wrong."

    def test_no_answer_has_a_folder_of_the_server(self) -> None:
        error = InputError(Path("/srv/jobs/run-1/out"), Text("see {path}.", path=Path("/srv/x.csv")))
        answer = as_json(error.code, error.text)
        assert answer["message"] == "out: see x.csv." and "srv" not in json.dumps(answer)

    def test_no_name_steers_the_terminal(self) -> None:
        error = InputError(Path("a\x1b[31m.csv"), "it has\ta\x1b]0;x\x07, b\x9b2J.\nNext line.")
        assert str(error) == "a\ufffd[31m.csv: it has\ta\ufffd]0;x\ufffd, b\ufffd2J.\ufffdNext line."

    @given(st.text())
    def test_no_text_breaks_it(self, text: str) -> None:
        error = InputError(text, text)
        assert str(error) == printable(f"{text}: {text}") and InputError.from_text(error.text).text == error.text

    @given(st.lists(st.sampled_from(["a", "bc ", Option("k"), Option("step", "1h"), Name("f.csv")])))
    def test_a_shortened_text_has_no_half_of_a_reference(self, pieces: list[str | Option | Name]) -> None:
        text = Text.of(pieces)
        for most in range(len(render(text, as_field)) + 2):
            short = text.shortened(most)
            kept = [part for part in short if not isinstance(part, str)]
            assert kept == [part for part in text if not isinstance(part, str)][: len(kept)]
            assert short == text or (short[-1][-1] == "…" and len("".join(map(_plain, short))) <= most + 1)


def _plain(part: Any) -> str:
    return part if isinstance(part, str) else str(part.name)


def test_the_same_error_in_python_on_the_command_line_and_in_the_api(
    command: Callable[..., Any], tmp_path: Path
) -> None:
    data = tmp_path / "trips.csv"
    data.write_text("origin,destination,time\na,b,2020-01-01T00:00\n")
    with pytest.raises(ParameterError) as raised:
        find_method("joint").params.checked({"min_tiles": 0})
    reason = "Expected a number of at least 1, got 0."
    assert str(raised.value) == f"min_tiles: {reason}"
    ran = command("anonymize", "joint", data, "--min-tiles", "0", "-o", tmp_path / "out")
    assert ran.code == 2 and ran.sentence == f"crowdveil: --min-tiles: {reason}"
    (tmp_path / "service").mkdir()
    with opened(tmp_path / "service") as service:
        answer = Within(make_app(service)).post(
            "/methods/joint/jobs",
            data={"parameters": json.dumps({"min_tiles": 0})},
            files={"data": ("trips.csv", data.read_bytes())},
        )
    error = answer.json()["error"]
    subject = {"kind": "option", "name": "min_tiles", "value": "", "subject": True}
    assert (answer.status_code, error["code"], error["subject"]) == (422, "bad_parameter", subject)
    assert error["message"] == f"min_tiles: {reason}" and error["parts"] == [subject, reason]


PACKAGE = Path(crowdveil.__file__).parent
ERROR_NAMES = ("error", "err", "exc", "again", "problem")


def _sources(pattern: str) -> dict[str, ast.Module]:
    """Parse the files that have what is looked for in their text, which are few."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in PACKAGE.rglob("*.py")}
    return {name: ast.parse(text) for name, text in texts.items() if re.search(pattern, text)}


def _read_expressions(node: ast.AST) -> list[ast.expr]:
    """Return what a piece of code compares, indexes, searches or calls a method of."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Subscript):
        return [node.value]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        searches = isinstance(node.func.value, ast.Name) and node.func.value.id == "re"
        return [node.func.value, *(node.args if searches or node.func.attr in ("sub", "match") else ())]
    return []


def _is_sentence(expression: ast.expr) -> bool:
    """Whether an expression is `str(error)`, or `text`, `message` or `reason` of an error."""
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name) and expression.func.id == "str":
        of = expression.args[0] if expression.args else None
    else:
        named = isinstance(expression, ast.Attribute) and expression.attr in ("text", "message", "reason")
        of = expression.value if named else None  # type: ignore[attr-defined]
    return isinstance(of, ast.Name) and of.id in ERROR_NAMES


@pytest.mark.parametrize(
    ("code", "parses"),
    [("str(error).split('=')", True), ("re.match('k', str(exc))", True), ("err.message == 'x'", True),
     ("problem.text[0]", True), ("print(str(error))", False), ("str(name).split()", False)],
)  # fmt: skip
def test_code_that_parses_a_sentence_is_found(code: str, parses: bool) -> None:
    assert any(_is_sentence(read) for node in ast.walk(ast.parse(code)) for read in _read_expressions(node)) == parses


def test_no_code_parses_the_sentence_of_an_error() -> None:
    """The text of an exception is shown, stored or sent; it is never split, searched, replaced or compared."""
    foreign = {"io/duckdb_engine.py", "io/source.py", "engine/spark.py"}  # of DuckDB, Arrow and Spark
    names = "|".join(ERROR_NAMES)
    parsed = _sources(rf"\bstr\(\s*({names})\b|\b({names})\s*\.(text|message|reason)\b")
    assert len(parsed) > 10
    found = [
        name
        for name, tree in parsed.items()
        if name not in foreign
        if any(_is_sentence(read) for node in ast.walk(tree) for read in _read_expressions(node))
    ]
    assert found == []


def test_the_page_parses_no_sentence() -> None:
    words = (Path(__file__).parents[1] / "web" / "page" / "words.ts").read_text(encoding="utf-8")
    rendering = words[words.index("function sentence") :]
    assert not re.search(r"\.(test|replace|match|split|startsWith)\(", rendering[: rendering.index("\n}")])


def test_no_message_spells_an_option() -> None:
    """An option in a message is a reference, since only the command line spells it with dashes."""
    classes, found = (
        {"InputError", "ParameterError", "OutputError", "GuaranteeViolatedError", "ApiError", "StepError"},
        [],
    )
    for name, tree in _sources(r"(?<![\w-])--[a-z]").items():
        if name.startswith("cli/"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in classes:
                texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
                # A whole command, such as "crowdveil filter --bbox", is one to type.
                found += [
                    f"{name}: {t}"
                    for t in texts
                    if re.search(r"(?<![\w-])--[a-z]", re.sub(r"crowdveil [a-z]+ --", "", t))
                ]
    assert found == []


def _is_call(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def test_no_reference_is_put_into_a_string() -> None:
    """A parameter in a message is a field of its template, which every interface names in its own way."""
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _sources(r"\b(Option|Text)\(").items()
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.Call) and (isinstance(node, ast.JoinedStr) or _is_call(node, "str"))
        if any(_is_call(inner, "Option", "Text") for inner in ast.walk(node))
    ]
    assert found == []


def _parameters(command: click.Command) -> set[str]:
    """Return the names of all parameters of a command and of those below it."""
    found = {str(param.name) for param in command.params}
    if isinstance(command, click.Group):
        context = click.Context(command)
        below = [command.get_command(context, name) for name in command.list_commands(context)]
        found = found.union(*(_parameters(each) for each in below if each is not None))
    return found


def test_every_field_of_a_template_is_given_or_is_a_parameter() -> None:
    known = _parameters(cli) | {"json"}  # whose name in Python is that of a module
    for name, tree in _sources(r"\bText\(").items():
        for node in ast.walk(tree):
            if not _is_call(node, "Text"):
                continue
            assert isinstance(node, ast.Call)
            template = node.args[0]
            assert isinstance(template, ast.Constant), f"{name}:{node.lineno}: a template is no value of the data"
            fields = {field for _, field, _, _ in Formatter().parse(template.value) if field is not None}
            given = {str(keyword.arg) for keyword in node.keywords}
            assert given <= fields and fields - given <= known, f"{name}:{node.lineno}"
