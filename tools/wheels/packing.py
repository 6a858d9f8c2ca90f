"""Pack a wheel. The interpreter of the environment with setuptools runs this, in the sources.

``ORDER`` is a JSON file with the places of files, ``PLACE`` is the folder to write to.
"""

import json
import shutil
import sys
from pathlib import Path

import setuptools
from fastops_build.command import BuildExtension, build_info, extensions


class Put(BuildExtension):
    """Copies compiled libraries into the package."""

    order: dict

    def build_extensions(self):
        root = Path(self.build_lib)
        for target, library in self.order["files"].items():
            path = root / target
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(library, path)
        info = root / "fastops" / "_build_info.py"
        info.write_text(build_info(self.order["builds"]))


def main():
    order, place = sys.argv[1:]
    Put.order = json.loads(Path(order).read_text())
    for pattern in ("build/lib*", "build/bdist*", "*.egg-info"):
        for left in Path().glob(pattern):
            shutil.rmtree(left)
    setuptools.setup(
        ext_modules=extensions(),
        cmdclass={"build_ext": Put},
        script_args=[
            *("--quiet", "bdist_wheel", "--dist-dir", place),
            *("--plat-name", Put.order["platform"]),
        ],
    )


if __name__ == "__main__":
    main()
