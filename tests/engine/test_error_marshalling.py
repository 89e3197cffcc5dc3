"""An error of ours goes through Spark as text, and comes out as it was."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from crowdveil.engine.error_marshalling import call_marked, iterate_marked, restored
from crowdveil.errors import GuaranteeViolatedError, InputError, MissingExtraError, OutputError, ParameterError


@pytest.mark.parametrize("kind", [InputError, ParameterError, OutputError, GuaranteeViolatedError])
def test_an_error_of_ours_crosses(kind: type[Exception]) -> None:
    def fail(_: object) -> None:
        raise kind('time step 3 of 7: "k" is [too] large')

    with pytest.raises(RuntimeError) as sent:
        call_marked(fail, None)
    text = f"An exception was thrown from the Python worker:\nTraceback …\nRuntimeError: {sent.value}\n\n\tat org.apache.spark"
    arrived = restored(Exception(text))
    assert type(arrived) is kind and str(arrived) == 'time step 3 of 7: "k" is [too] large'


def test_an_error_between_pieces_crosses_too() -> None:
    def pieces(numbers: Iterator[int]) -> Iterator[int]:
        for number in numbers:
            if number > 1:
                raise MissingExtraError("scikit-learn", "analysis", "glove-sk")
            yield number

    made = iterate_marked(pieces, iter([0, 1, 2]))
    assert [next(made), next(made)] == [0, 1]
    with pytest.raises(RuntimeError) as sent:
        next(made)
    assert "glove-sk needs the package scikit-learn" in str(restored(Exception(str(sent.value))))


def test_what_spark_says_is_told_where_a_user_can_mend_it() -> None:
    missing = restored(Exception("ModuleNotFoundError: No module named 'crowdveil'"))
    assert isinstance(missing, ParameterError) and "docs/spark.md" in str(missing)
    other = Exception("java.lang.OutOfMemoryError")
    assert restored(other) is other
