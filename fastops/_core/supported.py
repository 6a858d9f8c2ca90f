"""The versions of Python and TensorFlow that fastops supports. Only this file names them.

The build and the tools run this file alone, without importing TensorFlow. ``tools/supported.py``
writes the versions into pyproject.toml and the documentation.
"""

PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
"""The minor versions of CPython."""

RELEASES = {
    "2.19.0": ("3.13", "3.14"),
    "2.19.1": ("3.13", "3.14"),
    "2.20.0": ("3.14",),
    "2.21.0": ("3.14",),
    "2.22.0rc0": (),
}
"""The releases of TensorFlow for which a wheel has modules, in order. Each has the Pythons for
which TensorFlow has no wheel.

A candidate of a release is replaced by the release. A minor version of which all releases are
candidates is a *candidate*, too: it is supported, but nothing installs it unless it is asked for.
"""

KEPT = 3
"""The number of minor versions that are supported without a term, not counting candidates.

Older ones in `RELEASES` are deprecated: they work, an import warns, and the next minor version of
fastops drops them. So with the first release of a new minor version, the oldest one is deprecated.
"""

ONLY_CPU = ("2.19",)
"""The minor versions whose distribution `tensorflow` lacks functions that fastops calls."""


def minor(version):
    """Return the minor version of a version: ``2.22`` of ``2.22.0rc0`` or ``2.22.0-rc0``."""
    return ".".join(version.split(".")[:2])


def is_candidate(version):
    """Tell whether a version is a candidate of a release."""
    return "rc" in version


def minors():
    """Return the minor versions of TensorFlow, candidates last."""
    return [*dict.fromkeys(map(minor, RELEASES))]


def released():
    """Return the minor versions of TensorFlow without candidates."""
    names = (minor(release) for release in RELEASES if not is_candidate(release))
    return [*dict.fromkeys(names)]


def candidates():
    """Return by minor version the newest candidate, if there are only candidates of it."""
    names = released()
    return {minor(release): release for release in RELEASES if minor(release) not in names}


def deprecated():
    """Return the minor versions of TensorFlow that the next minor version of fastops drops."""
    return released()[:-KEPT]


def bounds():
    """Return the oldest minor version of TensorFlow, and the first one beyond the supported."""
    major, last = minors()[-1].split(".")
    return minors()[0], f"{major}.{int(last) + 1}"


def is_supported(version):
    """Tell whether a version of TensorFlow is in the range for which fastops can be built."""
    numbers = [[*map(int, minor(text).split("."))] for text in (*bounds(), version)]
    return numbers[0] <= numbers[2] < numbers[1]


def specifier(distribution="tensorflow-cpu"):
    """Return the versions of a distribution of TensorFlow that an installation may choose.

    The first release of a candidate is left out: a wheel of fastops that was made before it has no
    modules for it.
    """
    lowest, beyond = bounds()
    if distribution != "tensorflow-cpu":
        lowest = next(name for name in minors() if name not in ONLY_CPU)
    unknown = (f",!={name}.0" for name in candidates())
    return f">={lowest},<{beyond}{''.join(unknown)}"


def deprecation(version):
    """Return the warning for a version of TensorFlow that is deprecated, or `None`."""
    if minor(version) not in deprecated():
        return None
    kept = released()[-KEPT:]
    return DeprecationWarning(
        f"the next minor version of fastops drops TensorFlow {minor(version)}: "
        f"use {kept[0]} to {kept[-1]}"
    )


def remark(version):
    """Return what a user of a version of TensorFlow should know, or `None`."""
    if is_candidate(version):
        return "a release candidate"
    warning = deprecation(version)
    return warning and str(warning)
