"""Descriptor sets as protoc writes them, from a few words for each message."""

from collections.abc import Mapping, Sequence

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
)


def descriptor_set(
    name: str, *messages: str, enums: Mapping[str, Sequence[str]] | None = None
) -> bytes:
    """Return the set of a proto3 file. A message is as `Order: int64 id = 1; repeated Line lines =
    2`; fields can be `optional`, `repeated` or `map KEY`."""
    file = FileDescriptorProto(name=name, syntax="proto3")
    for enum, names in (enums or {}).items():
        made = file.enum_type.add(name=enum)
        for number, each in enumerate(names):
            made.value.add(name=each, number=number)
    for text in messages:
        message, _, fields = text.partition(":")
        _fill(file.message_type.add(name=message), fields, enums or {})
    return FileDescriptorSet(file=[file]).SerializeToString()


def _fill(message: DescriptorProto, fields: str, enums: Mapping[str, object]) -> None:
    for text in filter(str.strip, fields.split(";")):
        *words, name, _, number = text.split()
        field = message.field.add(name=name, number=int(number))
        field.label = FieldDescriptorProto.LABEL_OPTIONAL
        kind = words[-1]
        if words[0] == "map":
            entry = message.nested_type.add(name=f"{name.capitalize()}Entry")
            entry.options.map_entry = True
            _fill(entry, f"{words[1]} key = 1; {kind} value = 2", enums)
            kind = f"{message.name}.{entry.name}"
        if words[0] in ("map", "repeated"):
            field.label = FieldDescriptorProto.LABEL_REPEATED
        if words[0] == "optional":
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{name}")
        known = f"TYPE_{kind.upper()}"
        if known in FieldDescriptorProto.DESCRIPTOR.enum_types_by_name["Type"].values_by_name:
            field.type = FieldDescriptorProto.Type.Value(known)
        else:
            field.type_name = f".{kind}"
            of_enum = FieldDescriptorProto.TYPE_ENUM
            field.type = of_enum if kind in enums else FieldDescriptorProto.TYPE_MESSAGE
