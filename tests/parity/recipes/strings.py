"""Strings: parts, patterns, hashes, numbers, Unicode."""

import base64
from itertools import product

import numpy as np
import tensorflow as tf

from parity.draw import ints, strings
from parity.recipes import SIZES, recipe, rejected

BOTH = (False, True)
LARGE = (50, 1000)

TEXTS = (b"one two", b"a,b,,c", b"", b" pad ", b"123", "Stra\u00dfe \u01c4".encode(), b"\t\n x\r")


def texts(d, argument, **attrs):
    """Yield calls of an op with one input, with strings of all shapes."""
    for shape in (*SIZES, *((LARGE,) if d.thorough else ())):
        yield {argument: d.of("string")(*shape)} | attrs
    yield {argument: strings(TEXTS)} | attrs


# ---------------------------------------------------------------------------------------------
# One string to one string or number
# ---------------------------------------------------------------------------------------------


@recipe("StringStrip")
def strip(d):
    yield from texts(d, "input")


@recipe("StringLower StringUpper")
def case(d):
    for encoding in ("", "utf-8"):
        yield from texts(d, "input", encoding=encoding)


@recipe("StringLength")
def length(d):
    for unit in ("BYTE", "UTF8_CHAR"):
        yield from texts(d, "input", unit=unit)


@recipe("StringToHashBucket")
def hash_bucket(d):
    for num_buckets in (1, 11, 2**62):
        yield from texts(d, "string_tensor", num_buckets=num_buckets)


@recipe("StringToHashBucketFast")
def fast_hash_bucket(d):
    for num_buckets in (1, 11, 2**62):
        yield from texts(d, "input", num_buckets=num_buckets)


@recipe("StringToHashBucketStrong")
def strong_hash_bucket(d):
    for num_buckets, key in ((1, [0, 0]), (11, [1, -2]), (2**62, [2**63 - 1, -(2**63)])):
        yield from texts(d, "input", num_buckets=num_buckets, key=key)


@recipe("EncodeBase64")
def encode_base64(d):
    for pad in BOTH:
        yield from texts(d, "input", pad=pad)


@recipe("DecodeBase64")
def decode_base64(d):
    def encode(text):
        return base64.urlsafe_b64encode(text)

    for call in texts(d, "input"):
        encoded = np.vectorize(encode, [object])(call["input"].numpy())
        yield {"input": strings(encoded)}
        yield {"input": strings(np.vectorize(lambda text: text.rstrip(b"="), [object])(encoded))}
    if d.special:
        yield from texts(d, "input")


@recipe("StringToNumber")
def string_to_number(d):
    whole = [b"1", b"-2" if d.out_type.dtype.min < 0 else b"2", b"  7 ", b"0", b"+3", b"007"]
    numbers = [b"1.5", b"-2e3", b" 7 ", b".5", b"1e-45", b"1e999", b"-0", b"nan", b"-inf", b"0x1p4"]
    values = np.array(numbers if d.out_type.dtype.is_floating else whole[:4], object)
    for shape in ((), (0,), (2,), (2, 2), (2, 1, 2)):
        yield {"string_tensor": strings(np.resize(values, shape))}
    for value in values:
        yield {"string_tensor": strings(value)}
    if d.special:
        bounds = [d.out_type.dtype.min, d.out_type.dtype.max]
        for value in (*whole, *numbers, b"", b"x", b"1 2", *(str(bound) for bound in bounds)):
            yield {"string_tensor": strings([value])}
        yield from texts(d, "string_tensor")


@recipe("AsString")
def as_string(d):
    dtype = d.T.dtype
    formats = [{}, {"width": 12}, {"width": 9, "fill": "-"}]
    if dtype != tf.string:
        formats += [{"width": 9, "fill": fill} for fill in ("0", "+", " ")]
    if dtype.is_floating or dtype.is_complex:
        formats += [
            {"precision": 2},
            {"scientific": True},
            {"shortest": True, "precision": 9},
            {"precision": 0, "width": 20, "fill": "#"},
        ]
    for attrs in formats:
        for shape in ((), (0,), (23,), (2, 1, 3, 1, 2)):
            yield {"input": d.T(*shape)} | attrs
    if d.thorough:
        yield {"input": d.T(*LARGE)}


@recipe("StringFormat")
def string_format(d):
    inputs = [
        d.of(dtype)(*shape)
        for dtype, shape in (
            ("float32", (3,)),
            ("float64", ()),
            ("bfloat16", (2, 5)),
            ("int8", (7,)),
            ("uint64", (0,)),
            ("int32", (2, 1, 9)),
            ("bool", (4,)),
            ("string", (3, 2)),
            ("complex64", (2,)),
        )
    ]
    for template, summarize, tensors in (
        ("%s", 3, inputs[:1]),
        ("%s and %s", 1, inputs[1:3]),
        ("", 3, []),
        ("no tensor, 100%", 3, []),
        (" ".join(["%s"] * len(inputs)), -1, inputs),
        ("%s%s", 100, inputs[-2:]),
    ):
        yield {"inputs": tensors, "template": template, "summarize": summarize}
    for tensor in inputs:
        yield {"inputs": [tensor], "template": "ü{}", "placeholder": "{}"}


# ---------------------------------------------------------------------------------------------
# Joins
# ---------------------------------------------------------------------------------------------

SEPARATORS = ("", "/", "ü", b"\0\xff")


@recipe("StringJoin")
def join(d):
    draw = d.of("string")
    for shapes, separator in product(
        (
            ((),),
            ((), ()),
            ((3,), ()),
            ((), (0,), ()),
            ((2, 3), (2, 3), (), (2, 3)),
            ((1, 1024, 1), (1, 1024, 1)),
            ((2, 1, 3, 1, 2, 1, 2, 1),) * 2,
            *([(LARGE, LARGE)] if d.thorough else ()),
        ),
        SEPARATORS,
    ):
        yield {"inputs": [draw(*shape) for shape in shapes], "separator": separator}
    yield {"inputs": [], "separator": "-"}


@recipe("ReduceJoin")
def reduce_join(d):
    for shape, axes in (
        ((), []),
        ((5,), 0),
        ((3, 4), [0]),
        ((3, 4), [-1]),
        ((3, 4), [1, 0]),
        ((3, 4), []),
        ((2, 0, 3), [1]),
        ((2, 0, 3), [0]),
        ((2, 3, 1, 2, 3), [-1, 0, 2]),
        *([(LARGE, [1]), (LARGE, [1, 0])] if d.thorough else ()),
    ):
        for keep_dims, separator in product(BOTH, SEPARATORS[:3]):
            yield {
                "inputs": d.of("string")(*shape),
                "reduction_indices": ints(axes),
                "keep_dims": keep_dims,
                "separator": separator,
            }


@recipe("UnsortedSegmentJoin")
def segment_join(d):
    for (shape, ids, count), separator in product(
        (
            ((4,), [0, 2, 0, 1], 3),
            ((4,), [1, 1, 1, 1], 5),
            ((0, 3), [], 2),
            ((0,), [], 0),
            ((4, 2), [0, 2, 0, 1], 3),
            ((2, 3), [[0, 1, 0], [2, 2, 0]], 4),
            ((2, 3, 2), [[0, 1, 0], [2, 2, 0]], 3),
        ),
        SEPARATORS,
    ):
        yield {
            "inputs": d.of("string")(*shape),
            "segment_ids": d.Tindices.const(ids),
            "num_segments": d.Tnumsegments.const(count),
            "separator": separator,
        }


# ---------------------------------------------------------------------------------------------
# Parts
# ---------------------------------------------------------------------------------------------

PHRASES = (b"abcdef", "äöü€🙂".encode(), b"xyz", b"-7.25")


@recipe("Substr")
def substring(d):
    for (shape, pos, size), unit in product(
        (
            ((), 0, 1),
            ((), -2, 2),
            ((0,), 0, 5),
            ((4,), 1, 2),
            ((4,), -3, 9),
            ((4,), [0, 1, 2, -1], [1, 0, 2, 1]),
            ((2, 3), 3, 5),
            ((2, 3), [[0, 1, 2], [-1, -2, -3]], [[3, 2, 1], [1, 2, 3]]),
            ((2, 3), [0, 1, 2], [9, 1, 0]),
            ((3,), [[0], [2]], [[1], [2]]),
            ((), [0, 1, 2], [2, 2, 2]),
            ((2, 1, 3, 1, 2), 1, 1),
            ((2, 3, 2), np.full((2, 3, 2), 1), np.full((2, 3, 2), 2)),
        ),
        ("BYTE", "UTF8_CHAR"),
    ):
        call = {"pos": d.T.const(pos), "len": d.T.const(size), "unit": unit}
        yield call | {"input": strings(np.resize(np.array(PHRASES, object), shape))}
        if d.special:
            yield call | {"input": d.of("string")(*shape)}


@recipe("StringSplit")
def split(d):
    for delimiter, skip_empty in product((b" ", b"", b",", b", \t", b"\0"), BOTH):
        for shape in ((0,), (1,), (13,)):
            yield {
                "input": d.of("string")(*shape),
                "delimiter": strings(delimiter),
                "skip_empty": skip_empty,
            }
        yield {
            "input": strings(TEXTS),
            "delimiter": strings(delimiter),
            "skip_empty": skip_empty,
        }


@recipe("StringSplitV2")
def split_at(d):
    for sep, maxsplit in product((b" ", b"", b",", b",,", b"\0"), (-1, 0, 1, 3)):
        for shape in ((0,), (1,), (13,)):
            yield {"input": d.of("string")(*shape), "sep": strings(sep), "maxsplit": maxsplit}
        yield {"input": strings(TEXTS), "sep": strings(sep), "maxsplit": maxsplit}


@recipe("StringNGrams")
def ngrams(d):
    for splits, (widths, pad_width, short) in product(
        ([0, 4], [0, 1, 1, 6], [0, 0], [0]),
        (
            ([2], 0, False),
            ([1, 3], -1, False),
            ([3], 1, False),
            ([9], 0, True),
            ([9, 2], 0, True),
            ([], 0, False),
            ([], 1, True),
        ),
    ):
        yield {
            "data": d.of("string")(splits[-1]),
            "data_splits": d.Tsplits.const(splits),
            "separator": "|",
            "ngram_widths": widths,
            "left_pad": "<",
            "right_pad": "ü>",
            "pad_width": pad_width,
            "preserve_short_sequences": short,
        }


# ---------------------------------------------------------------------------------------------
# Patterns
# ---------------------------------------------------------------------------------------------

PATTERNS = ("", ".*", "[a-c]+", r"(\w)(\d?)", r"\s", "^a|e$", "(?i)ONE", r"\pL", "ü")


@recipe("RegexFullMatch")
def full_match(d):
    for pattern in PATTERNS:
        for call in texts(d, "input"):
            yield call | {"pattern": strings(pattern)}


@recipe("StaticRegexFullMatch")
def fixed_full_match(d):
    for pattern in PATTERNS:
        yield from texts(d, "input", pattern=pattern)


def replacements(d):
    """Yield calls with a pattern and its replacement."""
    for call in texts(d, "input"):
        yield call, "[a-c]+", "-"
    for pattern, replace_global in product(PATTERNS, BOTH):
        for rewrite in ("", "-", r"<\0>", *([r"\2\1"] if "(\\" in pattern else ())):
            for text in (strings(TEXTS), d.of("string")(2, 9)):
                yield {"input": text, "replace_global": replace_global}, pattern, rewrite


@recipe("RegexReplace")
def replace(d):
    for call, pattern, rewrite in replacements(d):
        yield call | {"pattern": strings(pattern), "rewrite": strings(rewrite)}


@recipe("StaticRegexReplace")
def fixed_replace(d):
    for call, pattern, rewrite in replacements(d):
        yield call | {"pattern": pattern, "rewrite": rewrite}


# ---------------------------------------------------------------------------------------------
# Unicode
# ---------------------------------------------------------------------------------------------

ENCODINGS = ("UTF-8", "UTF-16-BE", "UTF-32-BE")
LENIENT = (
    {"errors": "replace"},
    {"errors": "ignore"},
    {"errors": "replace", "replacement_char": 63, "replace_control_characters": True},
    {"errors": "ignore", "replace_control_characters": True},
)
"""Policies for invalid text."""

PROSE = ("", "abc", "äöü €", "🙂\t\x07", "日本", "naïve")


def encoded(d):
    """Yield strings in some encoding, the encoding, and the attributes for decoding."""
    for encoding in (*ENCODINGS, "ISO-8859-1", "SHIFT-JIS"):
        text = [word.encode(encoding.lower(), "ignore") for word in PROSE]
        yield text, encoding, {"errors": "strict"}
        for attrs in LENIENT:
            yield [*text, b"\xff", b"a\x80b", b"\xed\xa0\x80", b"\0"], encoding, attrs


@recipe("UnicodeTranscode")
def transcode(d):
    for (text, encoding, attrs), output in product(encoded(d), ENCODINGS):
        yield {
            "input": strings(text),
            "input_encoding": encoding,
            "output_encoding": output,
        } | attrs
    for shape in SIZES:
        yield {
            "input": d.of("string")(*shape),
            "input_encoding": "UTF-8",
            "output_encoding": "UTF-8",
        }


@recipe("UnicodeDecode")
def decode(d):
    for text, encoding, attrs in encoded(d):
        yield {"input": strings(text), "input_encoding": encoding} | attrs
    for shape in SIZES:
        yield {"input": d.of("string")(*shape), "input_encoding": "UTF-8"}


@recipe("UnicodeDecodeWithOffsets")
def decode_with_offsets(d):
    if d.Tsplits.dtype == tf.int64:
        yield from decode(d)


rejected(
    "UnicodeDecodeWithOffsets",
    "the kernel writes the int64 offsets as int32, which ends the process",
    Tsplits="int32",
)


@recipe("UnicodeEncode")
def encode(d):
    points = [ord(character) for word in PROSE for character in word]
    for splits, output in product(
        ([0, 0, len(points)], [0, 1, 5, 5, len(points)], [0, len(points)]), ENCODINGS
    ):
        call = {
            "input_splits": d.Tsplits.const(splits),
            "output_encoding": output,
        }
        yield call | {"input_values": ints(points), "errors": "strict"}
        wrong = ints([*points[:-3], -1, 0xD800, 0x110000])
        yield call | {"input_values": wrong, "errors": "replace"}
        yield call | {"input_values": wrong, "errors": "replace", "replacement_char": 65}
        yield call | {"input_values": wrong, "errors": "ignore"}
        if d.special:
            yield call | {"input_values": wrong, "errors": "strict"}
    yield {
        "input_values": ints([]),
        "input_splits": d.Tsplits.const([0]),
        "output_encoding": "UTF-8",
    }


@recipe("UnicodeScript")
def script(d):
    for shape in SIZES:
        yield {"input": d.of("int32")(*shape)}
    yield {"input": ints([ord(character) for word in PROSE for character in word])}
