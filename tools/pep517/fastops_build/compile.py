"""Compile the Cython modules, several at once, with TensorFlow's headers precompiled.

A module goes from ``.pyx`` to ``.cpp`` to ``.so``. The name of each of these files contains a
digest of everything that it depends on, and the file gets this name when it is complete. So
existing files are complete and correct, however the last build ended.

A module that uses TensorFlow's headers depends on their preprocessed text, not on their folder. If
two builds of TensorFlow have the same text, one library is used for both. Other modules are
compiled without the path of the headers. Their libraries are used for every TensorFlow that was
compiled with the same flags.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import Cython
from Cython.Build.Dependencies import create_dependency_tree

from . import needs, systems
from .progress import Progress
from .translate import translate
from .variants import VARIANTS

PACKAGE = Path("fastops")
HELPERS = PACKAGE / "_cpp"
# The file that includes TensorFlow's headers, and the declaration of modules that use it.
DEFINITIONS = "definitions.h"
# Precompiling these headers takes 23 s, and saves each module that uses them 5 s of 9 s.
WORTH_PRECOMPILING = 5
MEMORY_PER_JOB = 2 << 30
# The header that each module includes first. It changes how Cython's code adds lines to tracebacks.
TRACES = ("-include", "traces.h")
# Modules that are loaded before TensorFlow, and so are not linked to its libraries.
EARLY = frozenset({"fastops._shell.bottom"})
# Replacements for functions that only new systems have.
PORTABLE = Path(__file__).with_name("portable.cc")
# So that the linker only takes functions that are used.
SECTIONS = ("-ffunction-sections", "-fdata-sections")


def sources():
    """Return the modules by name, with their source files."""
    found = sorted(PACKAGE.rglob("*.pyx"))
    return {".".join(source.with_suffix("").parts): source for source in found}


def jobs():
    """Return how many compilers run at once: FASTOPS_JOBS, or one for each processor."""
    if chosen := os.environ.get("FASTOPS_JOBS"):
        return max(1, int(chosen))
    return max(1, min(systems.processors(), systems.memory() // MEMORY_PER_JOB))


class Compiled(NamedTuple):
    """The result of `compile_all`: libraries, by the names of their modules."""

    libraries: dict
    readers: set  # the modules whose libraries only fit this TensorFlow's headers
    tensorflow: needs.TensorFlow
    interface: str  # a digest of these headers after preprocessing


def compile_all(compiler, linker, interpreter=sys.executable):
    """Compile changed modules, and remove files of other sources.

    Parameters
    ----------
    compiler, linker
        The commands, as lists, that Python was built with.
    interpreter
        The Python that finds TensorFlow.
    """
    name = os.environ.get("FASTOPS_BUILD", "release")
    if name not in VARIANTS:
        sys.exit(f"FASTOPS_BUILD is one of {', '.join(VARIANTS)}, and not {name!r}")
    place = Path("build", f"{name}-{sysconfig.get_config_var('SOABI')}")
    with _alone(place) as scratch:
        return _Build(VARIANTS[name], place, scratch, compiler, linker, interpreter).run()


@contextmanager
def _alone(place):
    """Lock a folder, and make a folder in it for incomplete files."""
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the system releases the lock, however this process ends
        for left in place.glob("incomplete-*"):
            shutil.rmtree(left, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix="incomplete-", dir=place) as scratch:
            yield Path(scratch)


def _digest(*parts):
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:16]


class _Build:
    def __init__(self, variant, place, scratch, compiler, linker, interpreter):
        self._variant = variant
        self._place = place
        self._scratch = scratch
        self._compiler = compiler
        self._linker = linker
        self._interpreter = interpreter
        self._defines = needs.compiler()
        self._sources = sources()
        self._translated = {name: self._name_translated(name) for name in self._sources}
        include = f'"{DEFINITIONS}"'
        self._readers = {
            name for name, path in self._sources.items() if include in path.read_text()
        }
        self._compiled = {}
        self._interface = ""

    def run(self):
        # Modules that wait for the headers come last. Of these, the largest come first, so that the
        # build does not end with a long compilation.
        names = sorted(
            self._sources,
            key=lambda name: (name in self._readers, -self._sources[name].stat().st_size),
        )
        pool = ThreadPoolExecutor(jobs())
        progress = Progress()
        try:
            # The order is such that each task begins after the tasks that it depends on.
            translations = {name: Future() for name in names}
            tensorflow = pool.submit(self._find_tensorflow)
            pool.submit(self._translate, translations)
            headers = pool.submit(self._precompile, tensorflow)
            stand_ins = pool.submit(self._make_stand_ins, tensorflow)
            compilations = {
                pool.submit(
                    self._compile, name, tensorflow, translations[name], headers, stand_ins
                ): name
                for name in names
            }
            version = tensorflow.result().known_by["version"]
            stale = self._stale()
            if stale:
                plural = "s" if len(stale) > 1 else ""
                progress.say(f"compiling {len(stale)} module{plural} for TensorFlow {version}")
            done = 0
            for compilation in as_completed(compilations):
                compilation.result()
                if compilations[compilation] in stale:
                    done += 1
                    progress.say(f"[{done}/{len(stale)}] {compilations[compilation]}")
        finally:
            pool.shutdown(cancel_futures=True)
            progress.end()
        current = {*self._translated.values(), *self._compiled.values()}
        # A wheel has several libraries of a module, none of which is obsolete.
        old = set() if self._variant.portable else {*self._place.glob("*.so")} - current
        for left in old | {*self._place.glob("*.cpp")} - current:
            left.unlink()
        return Compiled(self._compiled, self._readers, tensorflow.result(), self._interface)

    def _name_translated(self, name):
        tree = create_dependency_tree(quiet=True)
        files = sorted(tree.all_dependencies(str(self._sources[name])))
        texts = (Path(file).read_text() for file in files)
        # Cython's own declarations do not depend on its folder.
        names = (file.removeprefix(os.path.dirname(Cython.__file__)) for file in files)
        digest = _digest(Cython.__version__, self._variant.directives, *names, *texts)
        return self._place / f"{name}.{digest}.cpp"

    def _find_tensorflow(self):
        tensorflow = needs.tensorflow(self._interpreter)
        self._interface = self._digest_interface(tensorflow)
        texts = [path.read_text() for path in sorted(HELPERS.rglob("*.h"))]
        if self._variant.portable:
            texts.append(PORTABLE.read_text())
        alike = (
            self._defines,
            self._compile_command(tensorflow, False),
            self._link_command(),
            *texts,
        )
        for name, translated in self._translated.items():
            interface = self._interface if name in self._readers else None
            early = ("early",) if name in EARLY else ()
            digest = _digest(translated.name, interface, *alike, *early)
            self._compiled[name] = self._place / f"{name}.{digest}.so"
        return tensorflow

    def _digest_interface(self, tensorflow):
        """Return a digest of TensorFlow's declarations and inline code, as modules see them."""
        header = self._scratch / "headers.h"
        lines = [f'#include "{name}"' for name in ("Python.h", DEFINITIONS, TRACES[-1])]
        header.write_text("\n".join([*lines, ""]))
        command = [*self._compile_command(tensorflow, True), "-E", "-P", "-x", "c++", header]
        # Normalize paths, which occur in messages.
        command.append(f"-ffile-prefix-map={tensorflow.directory}=tensorflow")
        seen = self._scratch / "headers.i"
        _call([*command, "-o", seen], "the compiler does not read TensorFlow's headers")
        return hashlib.sha256(seen.read_bytes()).hexdigest()[:16]

    def _stale(self):
        return {name for name, library in self._compiled.items() if not library.exists()}

    def _compile_command(self, tensorflow, reader):
        flags = [flag for flag in tensorflow.flags if reader or not flag.startswith("-I")]
        if reader and self._variant.portable:
            flags.append(f"-ffile-prefix-map={tensorflow.directory}=tensorflow")
        return [
            *self._compiler,
            # Use them as system headers, to suppress their warnings.
            *(flag.replace("-I", "-isystem", 1) for flag in flags),
            *systems.defines(self._defines),
            *("-fvisibility=hidden", "-Wall", "-Wno-sign-compare"),
            *("-Wno-unused-function", "-Wno-cpp"),
            *(f"-I{HELPERS / 'shim'}", f"-I{HELPERS}", f"-I{sysconfig.get_path('include')}"),
            *self._variant.flags,
        ]

    def _link_command(self, early=False):
        needed = () if early else systems.needed_libraries()
        libraries = [f"-l:{library}" for library in needed]
        # A missing symbol of TensorFlow must fail when a module is loaded, and not in a call.
        options = ["-Wl,-z,now", "-Wl,--no-as-needed"] if libraries else []
        return [*self._linker, *options, *self._variant.link_flags, *libraries]

    def _make_stand_ins(self, tensorflow):
        """Make empty libraries with the names of TensorFlow's, and return their folder.

        A module names the libraries that it needs; its symbols are looked up when it is loaded.
        Linking with TensorFlow's own libraries would take as long as compiling a module.
        """
        tensorflow.result()
        if self._variant.portable and self._stale():
            made = self._scratch / PORTABLE.with_suffix(".o").name
            command = [
                *self._compiler,
                "-std=c++17",
                *SECTIONS,
                *self._variant.flags,
                "-c",
                PORTABLE,
            ]
            _call([*command, "-o", made], f"the compiler does not compile {PORTABLE}")
        for library in systems.needed_libraries() if self._stale() else ():
            made = self._scratch / library
            command = [*self._linker, f"-Wl,-soname,{library}", "-x", "c", os.devnull, "-o", made]
            _call(command, f"the linker does not make {library}")
        return self._scratch

    def _translate(self, translations):
        modules = []
        for name, translation in translations.items():
            if self._translated[name].exists():
                translation.set_result(None)
            else:
                made = self._scratch / f"{name}.cpp"
                modules.append((name, str(self._sources[name]), str(made)))
        try:
            for name in translate(modules, self._variant.directives) if modules else ():
                (self._scratch / f"{name}.cpp").rename(self._translated[name])
                translations[name].set_result(None)
        except BaseException as error:
            for translation in translations.values():
                if not translation.done():
                    translation.set_exception(error)

    def _precompile(self, tensorflow):
        """Precompile TensorFlow's headers; return the options for modules that use them."""
        command = self._compile_command(tensorflow.result(), True)
        if "__clang__" in self._defines or (
            len(self._stale() & self._readers) < WORTH_PRECOMPILING * jobs()
        ):
            return TRACES
        header = self._scratch / "headers.h"  # written by `_digest_interface`
        # If that fails, for example because the disk is full, the build only takes longer.
        done = subprocess.run(
            [*command, "-x", "c++-header", header, "-o", f"{header}.gch"], capture_output=True
        )
        return ("-include", str(header)) if done.returncode == 0 else TRACES

    def _compile(self, name, tensorflow, translation, headers, stand_ins):
        translation.result()
        reader = name in self._readers
        ahead = headers.result() if reader else TRACES
        target = self._compiled[name]
        if target.exists():
            return
        compiled, made = self._scratch / f"{name}.o", self._scratch / f"{name}.so"
        command = self._compile_command(tensorflow.result(), reader)
        failure = f"the compiler does not compile {self._sources[name]}"
        _call([*command, *ahead, "-c", self._translated[name], "-o", compiled], failure)
        place = stand_ins.result()
        objects = [compiled, *sorted(place.glob("portable.o"))]
        link = self._link_command(early=name in EARLY)
        _call([*link, f"-L{place}", *objects, "-o", made], failure)
        made.rename(target)


def _call(command, failure, environment=None):
    done = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
    if done.stderr:
        print(done.stderr, end="", file=sys.stderr, flush=True)
    if done.returncode != 0:
        sys.exit(f"fastops is not built: {failure} (exit status {done.returncode}, see above)")
