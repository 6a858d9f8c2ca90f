"""Running a program as Python itself would: ``python -m fastops script.py``.

What a program can see of it (`sys.argv`, `sys.path`, ``__main__``, the stack, tracebacks, the exit
status) is as under ``python script.py``.
"""

import builtins
import os
import pkgutil
import runpy
import sys
from importlib.machinery import BuiltinImporter, SourceFileLoader, SourcelessFileLoader
from types import ModuleType

try:  # now: `launch.load` makes later imports of fastops those of TensorFlow
    from fastops._shell import bottom
except ImportError:  # not compiled, which is an error where the program imports fastops

    class bottom:  # type: ignore[no-redef]  # noqa: N801  (in the place of the module)
        """The same calls, upon our frames."""

        execute = staticmethod(exec)

        @staticmethod
        def call(function, *arguments):
            """Call a function."""
            return function(*arguments)


def run(program):
    """Run a program to its end.

    Parameters
    ----------
    program : list of str
        What would stand after ``python``: a script, a directory or zip file with a ``__main__.py``,
        ``-`` for the standard input, ``-m`` and a module, or ``-c`` and code; then its arguments.
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
        bottom.call(runpy._run_module_as_main, module)  # this is `python -m`
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
            code = pkgutil.read_code(file)  # of a .pyc file
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
    """Put in the place of the current directory, which is first under ``python -m``, another."""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated):
        sys.path[0] = entry
    elif always:
        sys.path.insert(0, entry)


def _new_main(**names):
    """Give the program a ``__main__`` of its own, which stays until the process ends."""
    main = sys.modules["__main__"] = ModuleType("__main__")
    if "__mp_main__" in sys.modules:  # what multiprocessing calls it, since it was imported
        sys.modules["__mp_main__"] = main
    vars(main).update(__annotations__={}, __builtins__=builtins, **names)
    return vars(main)


def _execute(source, filename, **names):
    namespace = _new_main(**names)
    code = source if hasattr(source, "co_code") else compile(source, filename, "exec", 0, True)
    bottom.execute(code, namespace)


def _hide_ourselves(error):
    """Let Python's report of an error begin where the program begins."""
    inside = error.__traceback__
    while inside is not None and inside.tb_frame.f_code.co_filename == run.__code__.co_filename:
        inside = inside.tb_next
    hook = sys.excepthook

    def excepthook(kind, value, _):
        sys.excepthook = hook
        sys.last_traceback = value.__traceback__ = inside
        hook(kind, value, inside)

    sys.excepthook = excepthook
