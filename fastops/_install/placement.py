"""`fastops.install`: patches replacements in, and takes them out again."""

import sys
import threading
from contextlib import ExitStack, contextmanager
from fnmatch import fnmatchcase

from fastops._core.garbage import without_collections
from fastops._core.imports import ImportFollower
from fastops._install import lookups, upstream
from fastops._install.patch_points import patch, restore
from fastops._install.replacement import set_live
from fastops._install.targets import PACKAGES, targets
from fastops._install.verify.results import RESULTS, chosen

_LOCK = threading.RLock()
_placed: list = []  # see `patch`
_follower: ImportFollower | None = None  # while installed: it waits for imports of Keras
_holds = 0  # number of open `accelerated` blocks


def _chosen(target, only, exclude):
    def among(patterns):
        return any(
            pattern == target.layer or fnmatchcase(target.name, pattern) for pattern in patterns
        )

    return (only is None or among(only)) and not (exclude is not None and among(exclude))


def _patterns(value, name):
    if value is None:
        return None
    if isinstance(value, str) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{name} must be a list of names, not {value!r}")
    return tuple(value)


def install(
    *, only=None, exclude=None, functions=True, models=True, verify=None, verify_every=None
):
    """Let unchanged programs take the fast path, in the whole process.

    Parameters
    ----------
    only, exclude : list of str, optional
        The callables to replace, or not to replace. An item is the name of a layer (``"dispatch"``,
        ``"functions"``, ``"operators"``, ``"public"``, ``"replayed"``, ``"gradients"``,
        ``"variables"``, ``"datasets"``, ``"helpers"``, ``"keras"``, ``"models"``, ``"modules"``,
        ``"traced"``) or of a callable, as in ``"tf.Tensor.__add__"``, ``"gen_math_ops.tanh"``.
        ``*`` matches any characters.
    functions : bool
        Whether to run functions made by `tf.function` as `fastops.function` does. This includes
        those that Keras makes for ``fit``, ``predict`` and ``train_on_batch``. `False` is the same
        as ``exclude=["traced"]``.
    models : bool
        Whether calls of Keras's own layers, models, losses, metrics and optimizers, calls of users'
        modules, and draws of `tf.random.Generator` are recorded once and replayed afterwards.
        `False` is the same as ``exclude=["models", "modules"]``.
    verify : {None, "raise", "warn"} or bool
        Whether each call that a replacement handles is also made by TensorFlow, and compared.
        `True` or ``"raise"`` raises `VerificationError` if anything differs; ``"warn"`` warns
        with `VerificationWarning` and continues. In both cases the program gets TensorFlow's
        result. This is for tests: calls take several times as long as without fastops. `None`
        uses the setting ``FASTOPS_VERIFY``.
    verify_every : int, optional
        With a number n, one in n calls of each replacement is verified.

    Raises
    ------
    RuntimeError
        If `verify` is set, and fastops is already installed without verification.

    Notes
    -----
    `install` does nothing if fastops is already installed. Calls that a replacement does not handle
    (graphs, symbolic and composite tensors, other dtypes, wrong arguments) go to TensorFlow's own
    function with unchanged arguments.

    See Also
    --------
    uninstall : restores the original callables.
    accelerated : installs for a ``with`` block.
    verified : returns the results of verification.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> fastops.install()
    >>> tf.constant(1.0) + tf.constant(2.0)
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    >>> fastops.uninstall()
    """
    global _holds
    only, exclude = _patterns(only, "only"), _patterns(exclude, "exclude")
    optional = {"traced": functions, "models": models, "modules": models}

    def is_wanted(target):
        return optional.get(target.layer, True) and _chosen(target, only, exclude)

    mode, every = chosen(verify, verify_every)
    with _LOCK:
        _holds = 0  # the end of an enclosing `accelerated` block must not uninstall this
        if _placed:
            if verify and RESULTS.mode is None:
                raise RuntimeError("fastops is installed without verification: uninstall() first")
            return
        try:
            with without_collections():
                if mode is not None:
                    _engine().start(mode, every)
                _place_all(list(filter(is_wanted, targets())), mode)
            _follow_imports(is_wanted, mode)
            seeds = upstream.load("seeds")
            if seeds is not None and mode is None:  # a verified call draws in TensorFlow, too
                seeds.begin()
        except BaseException:
            uninstall()
            raise
        set_live(True)


def _follow_imports(is_wanted, mode):
    """Replace the targets of Keras and tf_keras later, if a program imports one of them later."""
    global _follower
    missing = [package for package in sorted(PACKAGES) if sys.modules.get(package) is None]

    def place():
        with _LOCK:
            if follower is not _follower:  # another thread has uninstalled meanwhile
                return
            for package in [name for name in missing if sys.modules.get(name) is not None]:
                missing.remove(package)
                try:
                    with without_collections():
                        _place_all(list(filter(is_wanted, targets(package))), mode)
                except Exception as problem:  # the program's import must not fail
                    upstream.leave_out("models", package, upstream.said(problem))
            if not missing:
                follower.stop()

    follower = _follower = ImportFollower(missing, place)
    if missing:
        follower.start()


def _engine():
    """Return the module that verifies calls. It is imported only if calls are verified."""
    from fastops._install.verify import engine

    return engine


def _place_all(selected, mode):
    """Patch all targets of a list that can be patched. Of a unit, patch all targets or none."""
    unit, begin, failed = None, 0, False
    for target in selected:
        if target.unit is None or target.unit != unit:
            unit, begin, failed = target.unit, len(_placed), False
        elif failed:
            continue
        try:
            _place(target, mode)
        except Exception as problem:
            failed = True
            upstream.leave_out(target.layer, target.name, upstream.said(problem))
            restore(_placed, begin)


def _place(target, mode):
    original = vars(target.holder)[target.attribute]
    replacement = target.make(original)
    lookups.guard(target, original, replacement)
    if mode is not None:
        _engine().verify(target.layer, target.name, replacement)
    patch(_placed, target.points(), original, replacement, target.announce)


def uninstall():
    """Restore the objects that `install` replaced.

    An attribute that other code has set since then keeps its value.

    Examples
    --------
    >>> import fastops
    >>> fastops.install()
    >>> fastops.uninstall()
    >>> fastops.is_installed()
    False
    """
    global _holds, _follower
    with _LOCK:
        _holds = 0
        set_live(False)
        if _follower is not None:
            _follower.stop()
            _follower = None
        with ExitStack() as steps:  # each one is taken, even if another one raises
            if RESULTS.mode is not None:
                steps.callback(_engine().stop)
            steps.callback(restore, _placed, 0)
            if (seeds := upstream.load("seeds")) is not None:
                steps.callback(seeds.end)


def is_installed():
    """Tell whether fastops is installed.

    Examples
    --------
    >>> import fastops
    >>> with fastops.accelerated():
    ...     fastops.is_installed()
    True
    """
    return bool(_placed)


@contextmanager
def accelerated(
    *, only=None, exclude=None, functions=True, models=True, verify=None, verify_every=None
):
    """Install fastops during a ``with`` block, in the whole process.

    Blocks may nest, and may overlap between threads. The first block installs, and the last one to
    end uninstalls. If fastops is already installed by `install`, a block changes nothing.

    Parameters
    ----------
    only, exclude, functions, models, verify, verify_every
        See `install`.

    Examples
    --------
    >>> import tensorflow as tf, fastops
    >>> with fastops.accelerated(models=False):
    ...     tf.constant(1.0) + 2.0
    <tf.Tensor: shape=(), dtype=float32, numpy=3.0>
    """
    global _holds
    with _LOCK:
        if not _holds and not _placed:
            install(
                only=only,
                exclude=exclude,
                functions=functions,
                models=models,
                verify=verify,
                verify_every=verify_every,
            )
            _holds = 1
        elif _holds:
            _holds += 1
        mine = bool(_holds)
    try:
        yield
    finally:
        with _LOCK:
            if mine and _holds:
                _holds -= 1
                if not _holds:
                    uninstall()
