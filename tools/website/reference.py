"""The pages of the reference, made from the docstrings of public objects.

Docstrings are read from the objects themselves, as `help` does: an op is made on first use, and its
signature and docstring are not in any source file.
"""

import ast
import inspect
import re
from pathlib import Path

import fastops
from fastops import backend, gen, graph, keras, ops, raw_ops

from . import numpydoc, plugin

CONSTANTS = {
    "REASONS": "A dict of the reasons why a call is not direct, with their meanings. "
    "[Semantics](../semantics.md#why-a-call-was-not-direct) explains all of them.",
    "__version__": "The version of fastops, as a string.",
}

MODULES = {
    "fastops": (fastops, "The names that `import fastops` provides, without the ops."),
    "fastops.backend": (backend, None),
    "fastops.backend.experimental": (backend.experimental, None),
    "fastops.graph": (graph, None),
    "fastops.keras": (keras, None),
}
"""Modules whose public names all have entries."""

ADAPTER = "fastops.backend.keras"
"""The package with Keras's functions, which Keras documents."""

FOUND_FIRST = "---\nsearch:\n  boost: 4\n---\n"
NOT_FOUND = "---\nsearch:\n  exclude: true\n---\n"
"""Settings for the search, by which the entry of an op comes before lists of ops."""

HEAP_TYPE = 1 << 9
"""A bit of `type.__flags__`: the class was made by a class statement, not by an extension."""

DETAILS = ("Source",)
"""Sections that the reference leaves out."""


def pages():
    """Return the pages.

    Returns
    -------
    dict of str
        The Markdown of the pages, by path below ``docs/``.
    """
    made = {
        f"reference/{name}.md": module_page(name, module, text)
        for name, (module, text) in MODULES.items()
    }
    made[f"reference/{ADAPTER}.md"] = adapter_page()
    made[f"reference/{plugin.NAME}.md"] = plugin.page(entry, signature)
    families = {family: family_ops(family) for family in dir(gen)}
    for family, members in families.items():
        made[f"reference/ops/{family}.md"] = family_page(family, members)
    made["reference/ops/index.md"] = index_page(families)
    made["reference/index.md"] = overview_page(families)
    return made


def anchor(name):
    """Return the anchor of a public name: the name without characters for emphasis in Markdown."""
    return name.replace("__", "")


# The public functions and classes ----------------------------------------------------------------


def module_page(name, module, text):
    """Return the page of a module: its docstring, and entries of its names."""
    parts = [f"# {name}\n", text or described(module.__doc__)]
    parts += [entry(f"{name}.{public}", value) for public, value in names(module).items()]
    return "\n".join(parts)


def names(module):
    """Return the public objects of a module by name, without other modules."""
    members = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in members.items() if not inspect.ismodule(value)}


def described(text):
    """Return the docstring of a module, with links to the pages that it names."""
    return re.sub(
        r"\bdocs/(\w+)\.md\b", r"[docs/\1.md](../\1.md)", numpydoc.markdown(numpydoc.parse(text))
    )


def adapter_page():
    """Return the page of the package with Keras's functions: its modules and their contents."""
    folder = Path(backend.__file__).parent / "keras"
    parts = [
        f"# {ADAPTER}\n",
        described(_docstring(folder / "__init__.py")),
        "These are Keras's functions, so Keras describes their parameters and results: "
        "`help(fastops.backend.keras.numpy.mean)` shows the text. "
        "[The Keras backend](../keras_backend.md#which-functions) lists all functions.\n",
        "| module | contents |\n| --- | --- |",
    ]
    for module, file in adapter_modules().items():
        said = numpydoc.parse(_docstring(file)).summary
        parts.append(f"| `{ADAPTER}.{module}` | {numpydoc.prose(said)} |")
    return "\n".join(parts) + "\n"


def adapter_modules():
    """Return the files of the package's modules by name, since importing them imports Keras."""
    folder = Path(backend.__file__).parent / "keras"
    files = sorted(folder.glob("*.py"))
    return {file.stem: file for file in files if file.stem != "__init__"}


def _docstring(file):
    return ast.get_docstring(ast.parse(file.read_text()))


def entry(name, value, level=2):
    """Return the reference entry of a public name."""
    short = name.rpartition(".")[2]
    head = f"{'#' * level} {_escaped(short)} {{ #{anchor(name)} }}\n"
    if short in CONSTANTS:
        return f"{head}\n`{name}`\n\n{CONSTANTS[short]}\n"
    if is_tensorflows(value):
        origin = f"{value.__module__}.{value.__qualname__}"
        kind = "class" if isinstance(value, type) else "function"
        return f"{head}\nTensorFlow's own {kind}, `{origin}`, under this name.\n"
    parsed = numpydoc.parse(value.__doc__)
    parts = [head, _code(name, value), numpydoc.markdown(parsed)]
    if isinstance(value, type):
        parts += [
            entry(f"{name}.{member}", attribute, level + 1)
            for member, attribute in members(value).items()
        ]
    return "\n".join(parts)


def is_tensorflows(value):
    """Tell whether a public object is defined by TensorFlow."""
    return getattr(value, "__module__", "").partition(".")[0] == "tensorflow"


def members(kind):
    """Return the public methods and properties of a class that have a docstring, by name."""
    found, machinery = {}, set()
    for base in kind.__mro__[:-1]:
        if not base.__flags__ & HEAP_TYPE:
            machinery.update(name for name, value in vars(base).items() if callable(value))
    for base in kind.__mro__[:-1]:
        package = base.__module__.partition(".")[0]
        if package not in ("fastops", plugin.NAME) or not base.__flags__ & HEAP_TYPE:
            continue  # members inherited from an extension's class are not public
        for name, value in vars(base).items():
            if name.startswith("_") or name in found or name in machinery:
                continue
            if isinstance(value, classmethod | staticmethod):
                value = value.__func__
            if (callable(value) or isinstance(value, property)) and value.__doc__:
                found[name] = value
    return found


def signature(value):
    """Return the signature of a public object, as it is called; "" if it has none."""
    if isinstance(value, property) or not callable(value):
        return ""
    if isinstance(value, type) and issubclass(value, BaseException):
        return ""
    try:
        full = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    given = [parameter for parameter in full.parameters.values() if parameter.name != "self"]
    return str(full.replace(parameters=given))


def _code(name, value):
    text = signature(value)
    if isinstance(value, type) and issubclass(value, BaseException):
        text = f"({', '.join(base.__name__ for base in value.__bases__)})"
    text = text.replace("<factory>", "...")
    return f"```python\n{_wrapped(name, text)}\n```\n"


def _wrapped(name, text):
    """Return a call, with one argument per line if it is too long for one line."""
    line = f"{name}{text}"
    if len(line) <= 88 or not text.startswith("("):
        return line
    closing = text.rindex(")")
    inner, after = text[1:closing], text[closing:]
    depth, begin, arguments = 0, 0, []
    for place, letter in enumerate(inner):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and not depth:
            arguments.append(inner[begin:place])
            begin = place + 1
    arguments.append(inner[begin:])
    listed = "".join(f"    {argument.strip()},\n" for argument in arguments if argument.strip())
    return f"{name}(\n{listed}{after}"


# The ops -----------------------------------------------------------------------------------------


def family_ops(family):
    """Return the ops of a family by name, each once."""
    module = getattr(gen, family)
    ops_by_name = {}
    for name in dir(module):
        op = getattr(module, name)
        if not hasattr(op, "op_name"):
            continue
        if op not in ops_by_name.values():
            ops_by_name[shown(op)] = op
    return dict(sorted(ops_by_name.items()))


def family_page(family, members):
    """Return the page of a family."""
    count = f"{len(members)} ops" if len(members) != 1 else "One op"
    head = (
        f"{FOUND_FIRST}# {_escaped(family)}\n\n{count} of TensorFlow's family `{family}`. "
        f"Each is in `fastops.ops`, `fastops.raw_ops` and `fastops.gen.{family}`, and takes "
        "arguments by keyword only. TensorFlow's own description of an op is at the end of its "
        "docstring: `help(fastops.ops.add_v2)` shows it. "
        "[Coverage](../../coverage.md) lists the dtypes that were verified.\n"
    )
    return "\n".join([head, *(op_entry(op) for op in members.values())])


def op_entry(op):
    """Return the reference entry of an op."""
    name, raw = shown(op), raw_name(op)
    parsed = numpydoc.parse(op.__doc__)
    own = numpydoc.Docstring(
        parsed.summary,
        parsed.text,
        {title: text for title, text in parsed.sections.items() if not title.endswith(" says")},
    )
    return "\n".join(
        [
            f"## {_escaped(name)} {{ #{anchor(name)} }}\n",
            _code(f"fastops.ops.{name}", op),
            f"Op `{op.op_name}`: `fastops.raw_ops.{raw}`, `tf.raw_ops.{raw}`.\n",
            numpydoc.markdown(own, without=DETAILS),
        ]
    )


def shown(op):
    """Return the name that users write, without an underscore that avoids a builtin's name."""
    plain = op.__name__.removeprefix("_")
    return plain if getattr(ops, plain, None) is op else op.__name__


_RAW: dict[str, str] = {}


def raw_name(op):
    """Return the name of an op in `fastops.raw_ops`."""
    if not _RAW:
        _RAW.update({getattr(raw_ops, name).op_name: name for name in dir(raw_ops)})
    return _RAW.get(op.op_name, op.op_name)


def index_page(families):
    """Return the page that lists every op."""
    ops_by_name = {name: (family, op) for family, of in families.items() for name, op in of.items()}
    rows = [
        f"| [`{name}`]({family}.md#{anchor(name)}) | `{raw_name(op)}` | [{family}]({family}.md) |"
        for name, (family, op) in sorted(ops_by_name.items(), key=lambda item: item[0].strip("_"))
    ]
    head = (
        f"{NOT_FOUND}# All ops\n\n{len(ops_by_name)} ops in {len(families)} families. "
        "The search finds an op by either of its names.\n\n"
        "| `fastops.ops` | `fastops.raw_ops` | family |\n| --- | --- | --- |"
    )
    return "\n".join([head, *rows]) + "\n"


def overview_page(families):
    """Return the first page of the reference: every public name with its summary."""
    parts = [
        "# Reference\n",
        "The build of the site makes these pages from the docstrings. "
        f"[All ops](ops/index.md) lists the {sum(map(len, families.values()))} ops.\n",
    ]
    for name, (module, _) in MODULES.items():
        parts += [f"## {name}\n", "| name | |", "| --- | --- |"]
        for public, value in names(module).items():
            said = summary(public, value)
            parts.append(f"| [`{public}`]({name}.md#{anchor(f'{name}.{public}')}) | {said} |")
        parts.append("")
    parts += [
        "## More modules\n",
        "| module | |",
        "| --- | --- |",
        f"| [`{ADAPTER}`]({ADAPTER}.md) | The package of Keras's TensorFlow backend. |",
        f"| [`{plugin.NAME}`]({plugin.NAME}.md) | A plugin for pytest: fixtures, options. |\n",
    ]
    parts += ["## Modules of ops\n", "| module | |", "| --- | --- |"]
    for module in (ops, raw_ops, gen):
        said = numpydoc.prose(numpydoc.parse(module.__doc__).summary)
        parts.append(f"| `{module.__name__}` | {said} |")
    return "\n".join(parts) + "\n"


def summary(name, value):
    """Return a one-line summary of a public object."""
    if name in CONSTANTS:
        return re.split(r"(?<=\.)\s", CONSTANTS[name])[0].replace("../", "")
    if is_tensorflows(value):
        return f"TensorFlow's `{value.__module__}.{value.__qualname__}`."
    return numpydoc.prose(numpydoc.parse(value.__doc__).summary)


def _escaped(name):
    return name.replace("_", r"\_")
