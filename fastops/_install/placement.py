"""`fastops.install`: puts replacements into their places, and takes them out again."""

import threading
from contextlib import contextmanager
from fnmatch import fnmatchcase

from fastops._core.garbage import without_collections
from fastops._install import lookups, upstream
from fastops._install.replacement import set_live
from fastops._install.targets import targets
from fastops._install.verify.results import RESULTS, chosen

_LOCK = threading.RLock()
_placed: list = []  # holder, attribute, original, replacement, what announces it; and so on
_holds = 0  # of `accelerated`, nested


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
        What to replace, or leave: names of layers (``"dispatch"``, ``"functions"``,
        ``"operators"``, ``"public"``, ``"replayed"``, ``"gradients"``, ``"variables"``,
        ``"helpers"``, ``"keras"``, ``"models"``, ``"traced"``) or of callables, as in
        ``"tf.Tensor.__add__"``, ``"gen_math_ops.tanh"``; ``*`` stands for any letters.
    functions : bool
        Whether to run what `tf.function` has made as `fastops.function` does, with what Keras
        makes of it: ``fit``, ``predict``, ``train_on_batch``. `False` is ``exclude=["traced"]``.
    models : bool
        Whether calls of Keras's own layers, models, losses, metrics and optimizers are recorded
        once and replayed afterwards. `False` is ``exclude=["models"]``.
    verify : {None, "raise", "warn"} or bool
        Whether each call that a replacement makes is made in TensorFlow's way, too, and compared:
        `True` or ``"raise"`` raises `VerificationError` where anything differs, ``"warn"`` warns
        with `VerificationWarning` and goes on. What the program gets is TensorFlow's in either
        case. This is for tests: calls take longer than without fastops, several times. `None` is
        what ``FASTOPS_VERIFY`` says.
    verify_every : int, optional
        With a number n, one in n calls of each replacement is verified.

    Raises
    ------
    RuntimeError
        If calls are to be verified, and it is in force already without.

    Notes
    -----
    Does nothing where it is in force already. Whatever a replacement cannot take (graphs, symbolic
    and composite tensors, other dtypes, wrong arguments) reaches TensorFlow's own function with the
    arguments untouched.

    See Also
    --------
    uninstall : puts back what was there.
    accelerated : for a block.
    verified : what verification has found.

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
    optional = {"traced": functions, "models": models}
    mode, every = chosen(verify, verify_every)
    with _LOCK:
        _holds = 0  # it outlasts the blocks of `accelerated` around it
        if _placed:
            if verify and RESULTS.mode is None:
                raise RuntimeError("fastops is installed without verification: uninstall() first")
            return
        try:
            with without_collections():
                if mode is not None:
                    _engine().start(mode, every)
                _place_all(
                    [
                        target
                        for target in targets()
                        if optional.get(target.layer, True) and _chosen(target, only, exclude)
                    ],
                    mode,
                )
        except BaseException:
            uninstall()
            raise
        set_live(True)


def _engine():
    """Return what verifies calls, which nothing else needs."""
    from fastops._install.verify import engine

    return engine


def _place_all(found, mode):
    """Place what can be placed, of each unit all or nothing."""
    unit, begin, failed = None, 0, False
    for target in found:
        if target.unit is None or target.unit != unit:
            unit, begin, failed = target.unit, len(_placed), False
        elif failed:
            continue
        try:
            _place(target, mode)
        except Exception as problem:
            failed = True
            upstream.leave_out(target.layer, target.name, upstream.said(problem))
            _take_out(begin)


def _place(target, mode):
    original = vars(target.holder)[target.attribute]
    replacement = target.make(original)
    lookups.guard(target, original, replacement)
    if mode is not None:
        _engine().verify(target.layer, target.name, replacement)
    # Flat, as ten thousand tuples would be so many more for each collection to look at.
    _placed.extend((target.holder, target.attribute, original, replacement, target.announce))
    _set(target.holder, target.attribute, replacement, target.announce)


def _set(holder, attribute, value, announce):
    setattr(holder, attribute, value)
    if announce is not None:
        announce(value)


def _take_out(begin):
    """Put back what was replaced last, down to a length of `_placed`."""
    problems = []
    while len(_placed) > begin:
        holder, attribute, original, replacement, announce = _placed[-5:]
        del _placed[-5:]
        try:
            if vars(holder).get(attribute) is replacement:
                _set(holder, attribute, original, announce)
        except Exception as problem:  # the others are put back all the same
            problems.append(problem)
    if problems:
        raise problems[0]


def uninstall():
    """Put back the very objects that `install` replaced.

    An attribute that somebody else has set meanwhile keeps what it has.

    Examples
    --------
    >>> import fastops
    >>> fastops.install()
    >>> fastops.uninstall()
    >>> fastops.is_installed()
    False
    """
    global _holds
    with _LOCK:
        _holds = 0
        set_live(False)
        try:
            _take_out(0)
        finally:
            if RESULTS.mode is not None:
                _engine().stop()


def is_installed():
    """Tell whether `install` is in force.

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
    """`install` for a block; the whole process takes part in it.

    Blocks may nest and overlap between threads: the last one to end takes out what the first one
    put in. Inside `install` it changes nothing.

    Parameters
    ----------
    only, exclude, functions, models, verify, verify_every
        As for `install`.

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
