"""An error of ours goes through Spark as JSON, and comes out with its code, subject and message."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crowdveil.engine.spark import marshal_errors, marshal_errors_of_chunks, unmarshal_error
from crowdveil.errors import (
    CrowdveilError,
    GuaranteeViolatedError,
    InputError,
    MissingExtraError,
    Name,
    Option,
    OutputError,
    ParameterError,
    Text,
    TimeStepError,
)


def _arrived(error: CrowdveilError) -> Exception:
    """An error as it comes out of Spark, which has its text among others."""

    def fail(_: object) -> None:
        raise error

    with pytest.raises(RuntimeError) as sent:
        marshal_errors(fail, None)
    text = (
        f"An exception was thrown from the Python worker:\nTraceback …\nRuntimeError: {sent.value}\n\n\tat [org.apache]"
    )
    return unmarshal_error(Exception(text))


@pytest.mark.parametrize("kind", [InputError, ParameterError, OutputError, GuaranteeViolatedError])
def test_an_error_of_ours_crosses(kind: type[CrowdveilError]) -> None:
    arrived = _arrived(kind('column "k" is [too] {large}'))
    assert type(arrived) is kind and str(arrived) == 'column "k" is [too] {large}'


def test_subject_and_message_of_an_error_cross() -> None:
    arrived = _arrived(TimeStepError(3, 1_200, "an origin cannot keep its budget."))
    assert isinstance(arrived, InputError) and arrived.code == TimeStepError.code
    assert (
        arrived.subject == Name("time step 3 of 1,200") and str(arrived.reason) == "an origin cannot keep its budget."
    )
    assert str(arrived) == "time step 3 of 1,200: an origin cannot keep its budget."
    error = ParameterError(Option("k"), Text("Expected at most 5. See {k} and {file}.", file=Name("a.csv")))
    assert vars(_arrived(error)) == vars(error) and error.subject == Option("k")


def test_an_error_between_chunks_crosses_too() -> None:
    def chunks(numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            if number > 1:
                raise MissingExtraError("scikit-learn", "analysis", "glove-sk")
            yield number

    made = marshal_errors_of_chunks(chunks, iter([0, 1, 2]))
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(RuntimeError) as sent:
        next(made)
    arrived = unmarshal_error(Exception(str(sent.value)))
    assert isinstance(arrived, MissingExtraError) and "glove-sk needs the package scikit-learn" in str(arrived)


def test_errors_of_spark_that_a_user_can_fix_are_one_sentence() -> None:
    missing = unmarshal_error(Exception("ModuleNotFoundError: No module named 'crowdveil'"))
    assert isinstance(missing, ParameterError) and "docs/spark.md" in str(missing)
    other = Exception("java.lang.OutOfMemoryError")
    assert unmarshal_error(other) is other
