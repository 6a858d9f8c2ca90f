"""Pack everything that a machine with a GPU needs, on a machine with a network.

The next run reuses the environment, compiled files, and the pieces of tiers without changed files.
"""

import hashlib
import importlib
import os
import re
import sys
import time
import zipfile
from importlib.metadata import distributions
from pathlib import Path

from tools.wheels import BUILDER
from tools.wheels.environments import environment, find_python, run

from . import LARGEST_PIECE, ROOT, WORK, pieces, tree
from .assembling import STAND_IN
from .reducing import reduce

FIRST = (
    *("tensorflow", "numpy", "rich", "setuptools"),
    *("pytest", "pytest-benchmark", "pytest-xdist", "hypothesis"),
)
"""The packages for a first test on the GPU. Their requirements are packed with them."""

FIRST_LIBRARIES = ("cuda-runtime", "cublas", "nvjitlink")
"""The NVIDIA packages that TensorFlow calls for elementwise ops and products of matrices."""

CUDNN = ("cudnn", "cuda-nvrtc")  # cuda-nvrtc compiles kernels for cuDNN

SANITIZER = "nvidia-cuda-sanitizer-api-cu12"

NOT_PACKED = {
    r".*\.pyc$": "Python compiles the sources again",
    r".*/lib[^/]*\.a$": "for linkers",
    r".*/libnvrtc[^/]*\.alt\.so.*": "another build of the same library",
    r".*/libcusolverMg\.so.*": "for several GPUs: TensorFlow does not open it",
    r".*/(libcufftw|libnvblas)\.so.*": "for programs that call FFTW's or BLAS's functions",
    r"\.\./.*": "scripts with the path of this environment in them",
}
"""Patterns of files of packages that are not packed, each with the reason."""

PROGRAMS = (r"tensorflow/include/.*", r"clang/.*", r"libclang-.*")
"""Files of the first packages that are only needed for compiling, or not at all."""

NOT_TESTED_WITH = {"ray"}  # it starts services, and is large

LARGE = 1 << 20


class Packing:
    """Makes the pieces for one Python and one TensorFlow.

    Parameters
    ----------
    python, tensorflow : str
        Their versions, such as ``3.12`` and ``2.21.0``.
    out : path-like
        The folder of the pieces.
    capability : str, optional
        The compute capability of the GPU, such as ``9.0``. Code for other GPUs is left out of the
        libraries.
    revision : str
        The commit that is packed.
    preset : int
        The preset of xz.
    largest : int
        The maximum size of a piece in bytes.
    """

    def __init__(self, python, tensorflow, out, capability, revision, preset, largest, say):
        self._versions = {"python": python, "tensorflow": tensorflow}
        self._out = Path(out).absolute()
        self._capability = capability
        self._revision = tree.commit(revision)
        self._preset, self._largest = preset, largest or LARGEST_PIECE
        self._say = say
        name = f"{python}-{tensorflow}"
        self._environment = WORK / f"environment-{name}"
        self._tree = WORK / f"tree-{name}"
        self._staging = WORK / f"staging-{name}"
        self._site = Path("lib", f"python{python}", "site-packages")

    def run(self):
        """Make the environment, compile, pack; return the manifest."""
        self._out.mkdir(parents=True, exist_ok=True)
        self._say(f"TensorFlow {self._versions['tensorflow']}: making an environment")
        interpreter = self._make_environment()
        self._say(f"fastops {self._revision[:10]}: compiling")
        names = tree.bring(self._tree, self._revision)
        tree.build(self._tree, interpreter)
        self._stage(interpreter)
        names |= tree.built(self._tree)
        tiers = {"fastops": {f"tree/{name}": self._tree / name for name in names}}
        staged = (path for path in self._staging.rglob("*") if path.is_file())
        tiers["fastops"] |= {str(path.relative_to(self._staging)): path for path in staged}
        tiers |= self._tiers()
        return self._pack(tiers)

    def _make_environment(self):
        required = [
            f"tensorflow[and-cuda]=={self._versions['tensorflow']}",
            SANITIZER,
            *BUILDER,
            *requirements("test"),
        ]
        python = find_python(self._versions["python"])
        interpreter = environment(
            self._environment, python, *required
        )  # in that folder, since its path is absolute
        for program in (self._environment / self._site).glob("nvidia/*/bin/*"):
            program.chmod(0o755)  # not all wheels mark it as executable
        return interpreter

    def _stage(self, interpreter):
        """Make the files that are neither in the environment nor in the tree."""
        site = self._staging / self._site
        site.mkdir(parents=True, exist_ok=True)
        up = "/".join([".."] * len(self._site.parts))
        (site / "fastops.pth").write_text(f"{up}/tree\n{up}/tree/bench\n")
        tree.describe(self._tree, interpreter, site)
        command = ["cc", "-shared", "-nostdlib", "-s", "-Wl,--build-id=none"]
        run([*command, "-x", "c", os.devnull, "-o", self._staging / STAND_IN])

    def _tiers(self):
        """Return the files of the environment by tier, in the order in which they are needed."""
        site = self._environment / self._site
        return {
            tier: {str(self._site / name): site / name for name in names}
            for tier, names in tiers(site).items()
        }

    def _pack(self, tiers):
        path = self._out / pieces.MANIFEST
        before = pieces.read_manifest(path)["tiers"] if path.exists() else []
        fingerprints = {name: self._fingerprint(files) for name, files in tiers.items()}
        manifest = {
            "format": pieces.FORMAT,
            **self._versions,
            "fastops": self._revision,
            "capability": self._capability or "any",
            "stand-ins": stand_ins(tiers),
            "tiers": [
                next(
                    (tier for tier in before if self._still(tier, name, fingerprint)),
                    {"name": name, "contents": fingerprint, "bytes": 0, "pieces": []},
                )
                for name, fingerprint in fingerprints.items()
            ],
        }
        self._clear(manifest)
        pieces.write_json(path, manifest)
        self._write_carrier()
        for tier in manifest["tiers"]:
            if not tier["pieces"]:
                self._pack_tier(tier, tiers[tier["name"]])
                pieces.write_json(path, manifest)
            size = sum(piece["size"] for piece in tier["pieces"])
            self._say(
                f"{tier['name']}: {len(tier['pieces'])} pieces, {size / 2**20:.1f} MiB, "
                f"{tier['bytes'] / 2**20:,.0f} MiB unpacked"
            )
        return manifest

    def _fingerprint(self, files):
        """Return a digest of names and contents of files, and of options that change them."""
        sha = hashlib.sha256(f"{self._capability} {self._preset} {self._largest}".encode())
        for name in sorted(files):
            executable = bool(files[name].stat().st_mode & 0o100)
            sha.update(f"{name}\0{executable}\0{pieces.digest(files[name])}\n".encode())
        return sha.hexdigest()

    def _still(self, tier, name, fingerprint):
        """Tell whether the pieces of a tier are up to date."""
        if (tier["name"], tier["contents"]) != (name, fingerprint) or not tier["pieces"]:
            return False
        paths = [(self._out / piece["name"], piece) for piece in tier["pieces"]]
        return all(
            path.exists() and pieces.digest(path) == piece["sha256"] for path, piece in paths
        )

    def _clear(self, manifest):
        """Remove pieces that no longer belong to a tier."""
        kept = {piece["name"] for tier in manifest["tiers"] for piece in tier["pieces"]}
        for path in self._out.glob(f"*{pieces.SUFFIX}"):
            if path.name not in kept:
                path.unlink()

    def _pack_tier(self, tier, files):
        read, whole = 0, sum(path.stat().st_size for path in files.values())

        def content(path):
            nonlocal read
            found = path.read_bytes()
            read += len(found)
            if self._capability and len(found) >= LARGE and ".so" in path.name:
                found = reduce(found, int(self._capability.replace(".", "")))
            return found

        def on_piece(piece):
            share = f"{read / max(whole, 1):.0%} of the tier"
            self._say(f"{piece['name']}: {piece['size'] / 2**20:.1f} MiB, {share}")

        with pieces.Splitter(self._out, tier["name"], self._largest, on_piece) as stream:
            pieces.pack(files, stream, self._preset, content)
        tier |= {"bytes": whole, "pieces": stream.pieces}

    def _write_carrier(self):
        """Write this package as one program, for a machine without a checkout."""
        with zipfile.ZipFile(self._out / "gpu.pyz", "w", zipfile.ZIP_DEFLATED) as archive:
            main = "import sys\nfrom tools.gpu.__main__ import main\n\nsys.exit(main())\n"
            contents = {"__main__.py": main, "tools/__init__.py": ""}
            for path in sorted(Path(__file__).parent.rglob("*.py")):
                contents[str(path.relative_to(ROOT))] = path.read_text()
            for name, text in contents.items():
                info = zipfile.ZipInfo(name, time.gmtime(pieces.EPOCH)[:6])
                archive.writestr(info, text, zipfile.ZIP_DEFLATED)


def requirements(extra):
    """Return the requirements of an extra in pyproject.toml, including those of extras in it."""
    toml = importlib.import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    project = toml.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    found, left = list(project["dependencies"]), [extra]
    while left:
        for requirement in extras[left.pop()]:
            if other := re.fullmatch(r"fastops\[(.*)\]", requirement):
                left.append(other[1])
            elif name_of(requirement) not in NOT_TESTED_WITH:
                found.append(requirement)
    return sorted(set(found))


def name_of(requirement):
    """Return the normalized name of the distribution in a requirement."""
    name = re.match(r"[\w.-]+", requirement)[0]
    return re.sub(r"[-_.]+", "-", name).lower()


def tiers(site):
    """Return the names of the files of packages, by tier.

    Parameters
    ----------
    site : Path
        The folder of the packages.
    """
    installed = {
        name_of(distribution.metadata["Name"]): distribution
        for distribution in distributions(path=[str(site)])
    }
    first, left = set(), [*FIRST]
    while left:
        name = left.pop()
        if name not in installed or name in first:
            continue
        first.add(name)
        left += [
            name_of(requirement)
            for requirement in installed[name].requires or ()
            if "extra ==" not in requirement
        ]
    by_tier = {"tensorflow": [], "programs": [], "cudnn": [], "others": []}
    for name, distribution in installed.items():
        if name in ("pip", "fastops"):
            continue
        for file in distribution.files or ():
            if not any(re.fullmatch(pattern, str(file)) for pattern in NOT_PACKED):
                by_tier[_tier(name, str(file), first)].append(str(file))
    return {tier: sorted(names) for tier, names in by_tier.items()}


def _tier(distribution, file, first):
    if part := re.fullmatch(r"nvidia-(.*)-cu\d+", distribution):
        if part[1] in FIRST_LIBRARIES:
            return "tensorflow"
        return "cudnn" if part[1] in CUDNN else "others"
    if distribution not in first or any(re.fullmatch(pattern, file) for pattern in PROGRAMS):
        return "programs"
    return "tensorflow"


def stand_ins(tiers):
    """Return the libraries of later tiers that TensorFlow opens before it calls them."""
    library = re.compile(r".*/nvidia/[^/]+/lib/lib[^/]+\.so\.\d+")
    later = (name for tier in ("cudnn", "others") for name in tiers.get(tier, ()))
    return sorted(name for name in later if library.fullmatch(name))


def summary(manifest):
    """Return lines about what was packed."""
    lines = []
    for tier in manifest["tiers"]:
        size = sum(piece["size"] for piece in tier["pieces"])
        lines.append(f"{tier['name']:<12} {len(tier['pieces']):>3} pieces {size / 2**20:9.1f} MiB")
    return lines
