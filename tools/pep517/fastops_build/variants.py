"""The kinds of builds, one of which FASTOPS_BUILD chooses. See docs/debugging.md."""

from typing import NamedTuple


class Variant(NamedTuple):
    """Additional options for Cython, the compiler and the linker."""

    directives: dict
    flags: tuple
    link_flags: tuple = ()
    portable: bool = False  # for other systems, and independent of the folder of the build


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
SANITIZERS = (
    "-fsanitize=address,undefined",
    # With these options, GCC does not treat comparisons of functions with null as constants, but
    # Abseil needs that. AddressSanitizer detects reads through null pointers anyway.
    "-fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute",
    "-fno-omit-frame-pointer",
    # With this macro, Abseil's containers have another layout than in TensorFlow.
    "-U__SANITIZE_ADDRESS__",
)

VARIANTS = {
    "release": Variant(FAST, ("-O2", "-g0")),
    # The kind for `make wheels`: `release`, without differences between machines.
    "wheel": Variant(
        FAST, ("-O2", "-g0"), ("-s", "-Wl,--build-id=none", "-Wl,--gc-sections"), portable=True
    ),
    "profile": Variant(FAST, ("-O2", "-g", "-fno-omit-frame-pointer")),
    "debug": Variant(CHECKED, ("-Og", "-g", *ASSERTIONS)),
    "asan": Variant(CHECKED, ("-O1", "-g", *ASSERTIONS, *SANITIZERS), SANITIZERS),
}
