"""The ways to compile; the environment variable FASTOPS_BUILD names one. See docs/debugging.md."""

from typing import NamedTuple


class Variant(NamedTuple):
    """What Cython, the compiler and the linker are told beyond what they always are."""

    directives: dict
    flags: tuple
    link_flags: tuple = ()


FAST = {
    "language_level": 3,
    "boundscheck": False,
    "wraparound": False,
    "cdivision": True,
    "initializedcheck": False,
    "embedsignature": False,
}
CHECKED = FAST | {"boundscheck": True, "initializedcheck": True, "nonecheck": True}
ASSERTIONS = (
    "-DFASTOPS_ASSERTIONS",
    "-D_GLIBCXX_ASSERTIONS",
    "-DCYTHON_ASSUME_SAFE_MACROS=0",
    "-DCYTHON_ASSUME_SAFE_SIZE=0",
)
SANITIZERS = ("-fsanitize=address,undefined", "-fno-omit-frame-pointer")

VARIANTS = {
    "release": Variant(FAST, ("-O2", "-g0")),
    "profile": Variant(FAST, ("-O2", "-g", "-fno-omit-frame-pointer")),
    "debug": Variant(CHECKED, ("-Og", "-g", *ASSERTIONS)),
    "asan": Variant(CHECKED, ("-O1", "-g", *ASSERTIONS, *SANITIZERS), SANITIZERS),
}
