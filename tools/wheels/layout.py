"""The paths of libraries in a wheel."""

import sys


def layout(compiled, suffix):
    """Return the libraries by path in the wheel, and the table for `fastops._build_info`.

    Modules that do not use TensorFlow's headers are placed beside their sources. Others are placed
    in a folder for the first release whose headers are the same after preprocessing.

    Parameters
    ----------
    compiled
        The results of `compiling`, by release of TensorFlow.
    suffix
        The suffix of file names of extensions.
    """
    files, builds, folders = {}, {}, {}
    for release, build in compiled.items():
        folder = folders.setdefault(build["interface"], f"_builds/tf{release.replace('.', '_')}")
        builds.setdefault(folder, []).append(build["known_by"])
        for name, library in build["libraries"].items():
            package, _, inner = (name.replace(".", "/") + suffix).partition("/")
            between = f"{folder}/" if name in build["readers"] else ""
            if files.setdefault(f"{package}/{between}{inner}", library) != library:
                sys.exit(
                    f"{name} differs for TensorFlow {release}, but uses no header of TensorFlow"
                )
    return files, builds
