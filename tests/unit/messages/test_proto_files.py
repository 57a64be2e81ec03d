"""Where messages stand in .proto files. Rule: F293."""

import tracemalloc

import pytest

from kafkalog.errors import SchemaError
from kafkalog.messages.proto_files import message_indexes, message_place

NESTED = """
syntax = "proto3";
package test.package;

message MessageA {
  message Message_B {
    message Message_C { }
  }
  message Message_D {
    message Message_E { message Message_F { } message Message_G { } }
  }
}
message MessageH { message MessageI { } }
"""


def test_places_count_messages_at_each_level() -> None:
    assert message_indexes(NESTED) == {
        "test.package.MessageA": (0,),
        "test.package.MessageA.Message_B": (0, 0),
        "test.package.MessageA.Message_B.Message_C": (0, 0, 0),
        "test.package.MessageA.Message_D": (0, 1),
        "test.package.MessageA.Message_D.Message_E": (0, 1, 0),
        "test.package.MessageA.Message_D.Message_E.Message_F": (0, 1, 0, 0),
        "test.package.MessageA.Message_D.Message_E.Message_G": (0, 1, 0, 1),
        "test.package.MessageH": (1,),
        "test.package.MessageH.MessageI": (1, 0),
    }


def test_only_messages_count() -> None:
    proto = """
    // message Comment { }
    /* message Other { } */
    option java_package = "message Text { }";
    enum Kind { message = 0; }
    message First {
      map<string, string> names = 1;
      enum Inner { A = 0; }
      oneof choice { string message = 2; Second second = 3; }
      message Nested { }
    }
    extend First { optional string message = 100; }
    service Shop { rpc Buy (First) returns (Second) { option (x) = { message: "a" }; } }
    message Second { }
    """
    assert message_indexes(proto) == {"First": (0,), "First.Nested": (0, 0), "Second": (1,)}


def test_a_message_that_is_not_there_is_an_error() -> None:
    with pytest.raises(SchemaError, match="no message Third, but First"):
        message_place("message First {}", "Third")


@pytest.mark.parametrize("part", ["/* ", '"\\a', "'\\\\", "/", "'\"'"])
def test_what_is_never_closed_takes_memory_as_its_size(part: str) -> None:
    text = part * (2**20 // len(part))
    tracemalloc.start()
    try:
        assert message_indexes(f"message A {{}} {text}") == {"A": (0,)}
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100 * len(text)
