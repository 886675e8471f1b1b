"""The types of Arrow, brought to those that Spark has: every engine names and compares the same."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

_SIMPLE = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.null(): "int",  # So does Spark read it.
}
_PLAIN = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.date64(): pa.date32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
}
_WIDEST = 38


def type_name(kind: pa.DataType) -> str:
    """Name a type as Spark would."""
    kind = plain(kind)
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    return _SIMPLE.get(kind) or _nested(kind)


def plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that holds the same values without Arrow's ways to store them."""
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = plain(kind.value_type)
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns" if kind.unit == "ns" else "us", "UTC" if kind.tz else None)
    if pa.types.is_decimal(kind) and kind.precision <= _WIDEST:
        return pa.decimal128(kind.precision, kind.scale)
    if pa.types.is_duration(kind):
        return pa.int64()
    if pa.types.is_fixed_size_binary(kind) and not pa.types.is_decimal(kind):
        return pa.binary()
    return _PLAIN.get(kind) or _plain_nested(kind)


def _plain_nested(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_map(kind):
        return pa.map_(plain(kind.key_type), plain(kind.item_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, plain(field.type)) for field in kind])
    if _is_list(kind):
        return pa.list_(plain(kind.value_type))
    return kind


def _nested(kind: pa.DataType) -> str:
    if pa.types.is_map(kind):
        return f"map<{type_name(kind.key_type)},{type_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{f.name}:{type_name(f.type)}' for f in kind)}>"
    if _is_list(kind):
        return f"array<{type_name(kind.value_type)}>"
    return str(kind)


def _is_list(kind: pa.DataType) -> bool:
    return any(
        test(kind)
        for test in (
            pa.types.is_list,
            pa.types.is_large_list,
            pa.types.is_fixed_size_list,
            pa.types.is_list_view,
            pa.types.is_large_list_view,
        )
    )


def merge(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Merge the columns of a table's files by name, as Spark does, or raise ``ArrowInvalid``."""
    found: dict[str, pa.DataType] = {}
    for schema in schemas:
        if len(set(schema.names)) < len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise pa.ArrowInvalid(f"column {twice!r} is there twice")
        for field in schema:
            kind = plain(field.type)
            found[field.name] = _merged(field.name, found.get(field.name, kind), kind)
    return pa.schema(list(found.items()))


def _merged(name: str, one: pa.DataType, two: pa.DataType) -> pa.DataType:
    if one == two or pa.types.is_null(two):
        return one
    if pa.types.is_null(one):
        return two
    if pa.types.is_decimal(one) and pa.types.is_decimal(two) and one.scale == two.scale:
        return max(one, two, key=lambda kind: kind.precision)
    if pa.types.is_struct(one) and pa.types.is_struct(two):
        return pa.struct(list(merge([pa.schema(list(one)), pa.schema(list(two))])))
    raise pa.ArrowInvalid(
        f"column {name!r} is {type_name(one)} in one file and {type_name(two)} in another"
    )
