"""Runs a program as Python itself would: ``python -m fastops script.py``.

A program sees the same `sys.argv`, `sys.path`, ``__main__``, stack, tracebacks and exit status as
under ``python script.py``.
"""

import builtins
import os
import pkgutil
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import ModuleType

try:  # import it now: after `launch.load`, an import of fastops imports TensorFlow
    from fastops._shell import bottom
except ImportError:  # not compiled: the program's own import of fastops will raise

    class bottom:  # type: ignore[no-redef]  # noqa: N801  (in the place of the module)
        """Makes the same calls as the compiled module, but with fastops's frames on the stack."""

        execute = staticmethod(exec)

        @staticmethod
        def call(function, *arguments):
            """Call a function."""
            return function(*arguments)


def run(program):
    """Run a program until it ends.

    Parameters
    ----------
    program : list of str
        The arguments of ``python``: a script, a directory or zip file with a ``__main__.py``,
        ``-`` for the standard input, ``-m`` and a module, or ``-c`` and code; then the arguments of
        the program.
    """
    try:
        _start(*program)
    except SystemExit:
        raise
    except BaseException as error:
        _hide_ourselves(error)
        raise


def _start(first, *arguments):
    if first == "-m":
        module, *arguments = arguments
        sys.argv[:] = ["-m", *arguments]
        _new_main()
        bottom.call(runpy._run_module_as_main, module)  # the interpreter calls this for `python -m`
    elif first == "-c":
        code, *arguments = arguments
        sys.argv[:] = ["-c", *arguments]
        _set_path("")
        _execute(f"{code}\n", "<string>", __loader__=BuiltinImporter)
    elif first == "-":
        sys.argv[:] = ["-", *arguments]
        _set_path("")
        names = {"__file__": "<stdin>", "__cached__": None, "__loader__": BuiltinImporter}
        _execute(sys.stdin.buffer.read(), "<stdin>", **names)
    else:
        sys.argv[:] = [first, *arguments]
        path = os.path.join(os.getcwd(), first)
        if pkgutil.get_importer(path) is not None:  # a directory or a zip file
            _set_path(path, always=True)
            _new_main()
            bottom.call(runpy._run_module_as_main, "__main__", False)
        else:
            _run_script(path)


def _run_script(path):
    try:
        with open(path, "rb") as file:
            code = pkgutil.read_code(file)  # the code of a .pyc file; else None
            source = None if code else file.seek(0) or file.read()
    except OSError as error:
        error_text = f"can't open file {path!r}: [Errno {error.errno}] {error.strerror}"
        print(f"{sys.orig_argv[0]}: {error_text}", file=sys.stderr)
        sys.exit(2)
    _set_path(os.path.dirname(os.path.realpath(path)))
    loader = SourcelessFileLoader if code else SourceFileLoader
    _execute(
        code or source,
        path,
        __file__=path,
        __cached__=None,
        __loader__=loader("__main__", path),
    )


def _set_path(entry, *, always=False):
    """Replace the first entry of `sys.path`: ``python -m`` has put the current directory there."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = entry
    elif always:
        sys.path.insert(0, entry)


def _new_main(**names):
    """Make a new ``__main__`` module for the program. It exists until the process ends."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    if "__mp_main__" in sys.modules:  # the name that multiprocessing gives to `__main__`
        sys.modules["__mp_main__"] = main
    if sys.version_info < (3, 14):
        vars(main)["__annotations__"] = {}
    vars(main).update(__builtins__=builtins, **names)
    return vars(main)


def _execute(source, filename, **names):
    namespace = _new_main(**names)
    code = source if hasattr(source, "co_code") else compile(source, filename, "exec", 0, True)
    bottom.execute(code, namespace)


def _hide_ourselves(error):
    """Remove fastops's frames from the traceback that Python prints for an error."""
    inside = error.__traceback__
    while inside is not None and inside.tb_frame.f_code.co_filename == run.__code__.co_filename:
        inside = inside.tb_next
    hook = sys.excepthook

    def excepthook(kind, value, _):
        sys.excepthook = hook
        sys.last_traceback = value.__traceback__ = inside
        hook(kind, value, inside)

    sys.excepthook = excepthook
