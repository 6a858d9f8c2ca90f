"""What stands where in a wheel."""

import sys


def layout(compiled, suffix):
    """Return the libraries by their places in the wheel, and the table for `fastops._build_info`.

    Modules that read no headers of TensorFlow stand beside their sources, the others in a folder of
    the first release whose headers are, to the compiler, the same.

    Parameters
    ----------
    compiled
        What `compiling` has written, by releases of TensorFlow.
    suffix
        How the names of extensions end.
    """
    files, builds, folders = {}, {}, {}
    for release, one in compiled.items():
        folder = folders.setdefault(one["interface"], f"_builds/tf{release.replace('.', '_')}")
        builds.setdefault(folder, []).append(one["known_by"])
        for name, library in one["libraries"].items():
            package, _, place = (name.replace(".", "/") + suffix).partition("/")
            between = f"{folder}/" if name in one["readers"] else ""
            if files.setdefault(f"{package}/{between}{place}", library) != library:
                sys.exit(
                    f"{name} is compiled otherwise for TensorFlow {release}, and reads nothing"
                )
    return files, builds
