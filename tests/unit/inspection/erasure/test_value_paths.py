"""Values at a path of a decoded value. Rule: docs/erasure.md F1107."""

import pytest

from kafkalog.errors import OptionError
from kafkalog.inspection.erasure.value_paths import ValuePath, is_value

_VALUE = {
    "customer": {"id": "c-1", "e.mail": "a@b"},
    "items": [{"owner": "c-2"}, {"owner": "c-3", "more": {"id": 7}}],
}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.customer.id", ["c-1"]),
        ("$['customer']['e.mail']", ["a@b"]),
        ("$.items[*].owner", ["c-2", "c-3"]),
        ("$.items[-1].owner", ["c-3"]),
        ("$.items[2].owner", []),
        ("$.items.owner", []),
        ("$..id", ["c-1", 7]),
        ("$.absent.id", []),
        ("$", [_VALUE]),
    ],
)
def test_steps_are_fields_elements_and_any_depth(path: str, expected: list[object]) -> None:
    # F1107.
    assert sorted(map(str, ValuePath.of(path).values(_VALUE))) == sorted(map(str, expected))


@pytest.mark.parametrize("path", ["customer", "$.", "$.a[", "$.a[x]", ""])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(OptionError):
        ValuePath.of(path)


@pytest.mark.parametrize(
    ("found", "text", "expected"),
    [
        ("17", "17", True),
        (17, "17", True),
        (17.0, "17", True),
        (1.7e1, "17.0", True),
        (True, "true", True),
        (None, "null", True),
        (True, "1", False),
        ("a", "A", False),
        ({"a": 1}, "1", False),
        (17, "seventeen", False),
    ],
)
def test_a_value_is_its_text_or_the_number_that_it_is(
    found: object, text: str, expected: bool
) -> None:
    # F1107.
    assert is_value(found, text) is expected
