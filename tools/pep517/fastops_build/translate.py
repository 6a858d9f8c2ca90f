"""Translate Cython modules, all in one process, since starting one takes longer than most of them.

The process reads a JSON object with `options` for Cython and `modules`, which are lists of a name,
the source and the target. It writes a line with the name of each finished module.
"""

import json
import subprocess
import sys

from . import needs


def translate(modules, directives, annotate=False):
    """Translate modules; yield the name of each finished module.

    Parameters
    ----------
    modules
        The name, the source file and the target file of each module, as strings.
    directives
        Directives of Cython, by name.
    annotate
        Whether to write an HTML file for each module that shows calls of Python.
    """
    command = needs.python(f"from {__name__} import main; sys.exit(main())")
    order = {
        "options": {"cplus": True, "compiler_directives": directives, "annotate": annotate},
        "modules": modules,
    }
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        json.dump(order, process.stdin)
        process.stdin.close()
        waiting = [name for name, _, _ in modules]
        for line in process.stdout:
            waiting.remove(line.strip())
            yield line.strip()
    if process.returncode != 0 or waiting:
        sources = {name: source for name, source, _ in modules}
        sys.exit(
            f"fastops is not built: Cython does not translate {sources[waiting[0]]} (see above)"
        )


def main():
    from Cython.Compiler.Main import CompilationOptions, compile_single

    order = json.load(sys.stdin)
    for name, source, target in order["modules"]:
        options = CompilationOptions(output_file=target, **order["options"])
        if compile_single(source, options, full_module_name=name).num_errors:
            return 1
        print(name, flush=True)
    return 0
