"""The ways to compile; the environment variable FASTOPS_BUILD names one. See docs/debugging.md."""

from typing import NamedTuple


class Variant(NamedTuple):
    """What Cython, the compiler and the linker are told beyond what they always are."""

    directives: dict
    flags: tuple
    link_flags: tuple = ()
    portable: bool = False  # to other systems, the same wherever it is compiled


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
    # With these, GCC takes comparisons of functions with null for no constants, as Abseil needs
    # them. AddressSanitizer sees what is read through a null pointer.
    "-fno-sanitize=null,nonnull-attribute,returns-nonnull-attribute",
    "-fno-omit-frame-pointer",
    # Abseil's containers have another layout where they see it, and TensorFlow's do not.
    "-U__SANITIZE_ADDRESS__",
)

VARIANTS = {
    "release": Variant(FAST, ("-O2", "-g0")),
    # What `make wheels` compiles: `release`, without what tells one build from another.
    "wheel": Variant(
        FAST, ("-O2", "-g0"), ("-s", "-Wl,--build-id=none", "-Wl,--gc-sections"), portable=True
    ),
    "profile": Variant(FAST, ("-O2", "-g", "-fno-omit-frame-pointer")),
    "debug": Variant(CHECKED, ("-Og", "-g", *ASSERTIONS)),
    "asan": Variant(CHECKED, ("-O1", "-g", *ASSERTIONS, *SANITIZERS), SANITIZERS),
}
