"""The documentation names everything public and every reason; examples run, links work."""

import ast
import fnmatch
import inspect
import pkgutil
import re
from pathlib import Path

import pytest
import pytest_fastops as plugin

import fastops
from fastops import _registry, backend, gen, ops
from tools import reasons as tool
from tools.website import links, numpydoc, reference

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))

OF_OPS = ("fastops.gen", "fastops.ops", "fastops.raw_ops")
"""Modules whose public names are ops. Ops have pages by families."""


@pytest.fixture(scope="module")
def pages():
    return reference.pages()


# The reference -----------------------------------------------------------------------------------


def test_every_public_name_is_in_the_reference(pages):
    for module_name, (module, _) in reference.MODULES.items():
        page = pages[f"reference/{module_name}.md"]
        for name in module.__all__:
            if inspect.ismodule(getattr(module, name)):
                own = f"{module_name}.{name}"
                assert own in reference.MODULES or own in OF_OPS
            else:
                anchor = reference.anchor(f"{module_name}.{name}")
                assert f"{{ #{anchor} }}" in page, name
                assert f"]({module_name}.md#{anchor})" in pages["reference/index.md"], name


def test_the_backend_is_in_the_reference_and_keras_texts_are_not(pages):
    page = pages["reference/fastops.backend.md"]
    assert {description.name for description in backend.describe().values()} <= {
        *re.findall(r"{ #fastops\.backend\.(\w+) }", page),
        *reference.MODULES["fastops.backend.experimental"][0].__all__,
    }
    adapter = pages["reference/fastops.backend.keras.md"]
    listed = re.findall(r"^\| `fastops\.backend\.keras\.(\w+)` \| [^|]+ \|$", adapter, re.MULTILINE)
    folder = ROOT / "fastops/backend/keras"
    assert listed == sorted(path.stem for path in folder.glob("[a-z]*.py"))
    assert "##" not in adapter


def test_the_plugin_is_in_the_reference(pages, pytestconfig):
    page = pages["reference/pytest_fastops.md"]
    known = pytestconfig.pluginmanager.get_plugin("fastops")
    source = Path(known.__file__).read_text()
    options = re.findall(r'"(--fastops-[\w-]+)"', source)
    fixtures = re.findall(r"^@pytest\.fixture\ndef (\w+)", source, re.MULTILINE)
    assert len(options) >= 3
    assert len(fixtures) >= 2
    assert all(f"| `{option}" in page for option in options)
    assert all(f"{{ #pytest_fastops.{fixture} }}" in page for fixture in fixtures)
    for name in plugin.DEFAULTS:
        assert re.search(rf"`@pytest\.mark\.op_benchmark\([^`]*\b{name}=", page), name


def test_every_op_is_in_the_reference(pages):
    for name in dir(ops):
        op = getattr(ops, name)
        family = op.__module__.rpartition(".")[2]
        if family not in dir(gen):  # an op of a custom-op library or of a later TensorFlow
            continue
        shown = reference.shown(op)
        page = pages[f"reference/ops/{family}.md"]
        assert f"{{ #{shown} }}" in page, name
        assert f"]({family}.md#{shown})" in pages["reference/ops/index.md"], name
    assert sum(text.count("\nOp `") for text in pages.values()) > 1500


def test_everything_public_has_a_docstring():
    for module, _ in reference.MODULES.values():
        for public, value in reference.names(module).items():
            assert reference.summary(public, value), public
    for name in dir(ops):
        assert numpydoc.parse(getattr(ops, name).__doc__).summary.endswith("."), name


def test_texts_of_tensorflow_are_left_out(pages):
    assert "says" in _registry.op("MatMul").__doc__
    assert not [path for path, text in pages.items() if re.search(r"TensorFlow [\d.]+ says", text)]


def test_numpydoc_is_converted_to_markdown():
    parsed = numpydoc.parse("""Do it.

    In a way.

    Parameters
    ----------
    x, y : int
        Some
        numbers.
    *args
        More, in ``code``.

    Returns
    -------
    int or str

    Examples
    --------
    >>> 1
    1
    """)
    assert (parsed.summary, parsed.text) == ("Do it.", "In a way.")
    assert list(numpydoc.entries(parsed.sections["Parameters"])) == [
        ("x, y : int", "Some\nnumbers."),
        ("*args", "More, in ``code``."),
    ]
    assert numpydoc.markdown(parsed) == (
        "Do it.\n\nIn a way.\n\n**Parameters**\n\n- `x`, `y` : int  \n  Some numbers.\n"
        "- `*args`  \n  More, in `code`.\n\n**Returns**\n\n- int or str\n\n**Examples**\n\n"
        "```pycon\n>>> 1\n1\n```\n"
    )
    assert numpydoc.prose("``f(*x)`` of *two*, 2 * 3") == r"`f(*x)` of *two*, 2 \* 3"


# Reasons -----------------------------------------------------------------------------------------


@pytest.mark.quick
def test_the_tables_of_reasons_are_those_of_the_registry(capsys):
    assert tool.main(["--check"]) == 0, capsys.readouterr().out


# Errors ------------------------------------------------------------------------------------------

TROUBLES = (DOCS / "troubleshooting.md").read_text()

SAYS = re.compile(r"\b(?:raise (\w+)|return (\w+(?:Error|Warning))|sys\.exit|pytest\.fail)\(")

NOT_MET = {
    "_backend/adapter/draws.py": "a function of Keras has changed, which a test detects",
    "_backend/alias.pyx": "for authors of aliases",
    "_backend/catalogue.py: … is described twice": "for authors of functions of the backend",
    "_core/conversion.pyx": "caught: TensorFlow converts the value",
    "_core/opdef.py": "how the package calls it",
    "_core/schema.pyx": "ops that fastops cannot describe",
    "_graphs/resources.pyx": "a node that TensorFlow has run can be read",
    "_install/answer.pyx": "for authors of helpers",
    "_install/construction.pyx": "caught: TensorFlow makes the variable",
    "_install/helpers/custom_gradients.pyx": "TensorFlow's messages",
    "_install/helpers/modules.pyx": "TensorFlow's message",
    "_install/models/modules.pyx": "a module that is called has the method",
    "_install/public/lowering.pyx": "for authors of lowerings",
    "_specialize/recording/recorder.pyx": "caught: the call is not recorded",
    "_install/target.py": "for authors of patch points",
    "_install/targets.py": "for authors of groups",
    "_reports/floors.pyx": "in benchmarks only",
    "_specialize/native.pyx": "caught: the call is not recorded",
}
"""Sources (or single messages) whose messages never reach a user, with the reason."""


def said(path):
    """Yield the classes and messages of the exceptions of a source, with … for varying parts."""
    text = path.read_text()
    for match in SAYS.finditer(text):
        for end in range(match.end(), len(text)):
            if text[end] == ")":
                try:
                    call = ast.parse(f"f{text[match.end() - 1 : end + 1]}", mode="eval").body
                except SyntaxError:
                    continue  # a match inside of a string or of an inner pair
                if (message := template(call.args[0], text) if call.args else None) is not None:
                    yield match[1] or match[2], message
                break


def template(node, text):
    """Return a message with … for its varying parts; `None` if it is composed elsewhere."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            value.value if isinstance(value, ast.Constant) else "…" for value in node.values
        )
    if isinstance(node, ast.Name) and (match := re.search(rf'\b{node.id} = (f?".+")$', text, re.M)):
        return template(ast.parse(match[1], mode="eval").body, text)
    return None


def messages():
    """Return the classes and messages of exceptions that users may see."""
    found = set()
    for path in (ROOT / "fastops").rglob("*.py*"):
        place = path.relative_to(ROOT / "fastops").as_posix()
        if path.suffix not in (".py", ".pyx") or place.startswith("gen/") or place in NOT_MET:
            continue
        for kind, message in said(path):
            internal = f"{place}: {message}" in NOT_MET or kind in (
                "SystemError",
                "UnplannedError",
                "NotReplayableError",
                "MissingNameError",
                "StateError",
                "UnprovenError",
            )
            keras = place.startswith("_backend/") and re.match(r"[A-Z`]|mask_t ", message)
            if not internal and " " in message and (not keras or "Keras runs" in message):
                found.add((kind, message))
    for folder in ("bench/pytest_fastops", "tools/pep517/fastops_build"):
        for path in (ROOT / folder).glob("*.py"):
            found.update(said(path))
    return found


def shown():
    """Yield the classes and messages that the page shows as code, and a pattern for each."""
    text = re.sub(r"^```.*?^```\n", "", TROUBLES, flags=re.MULTILINE | re.DOTALL)
    for twice, once in re.findall(r"``(.+?) ?``|`([^`]+)`", text, re.DOTALL):
        kind, message = re.fullmatch(
            r"(?:(?:fastops\.)?(\w*(?:Error|Warning)): )?(.*)", " ".join((twice or once).split())
        ).groups()
        if len(message.replace("…", "").strip()) > 7:
            yield kind, message, like(message)


def like(message):
    """Return a pattern that matches a message, where … matches any text."""
    return re.compile(".*".join(map(re.escape, message.split("…"))))


def test_every_message_is_in_troubleshooting():
    listed = [*shown()]
    missing = {
        (kind, message)
        for kind, message in messages()
        if not any(
            pattern.fullmatch(message) and (of is None or kind in (None, of))
            for of, _, pattern in listed
        )
    }
    assert missing == set()
    assert len(messages()) > 70


def test_messages_that_never_reach_users_exist():
    for place in NOT_MET:
        path, _, message = place.partition(": ")
        given = {message for _, message in said(ROOT / "fastops" / path)}
        assert message in given if message else given, place


def test_every_class_of_errors_is_in_troubleshooting():
    kinds = [name for name in fastops.__all__ if name.endswith(("Error", "Warning"))]
    assert len(kinds) >= 4
    assert all(f"**`fastops.{name}" in TROUBLES for name in kinds)


def test_every_explained_message_exists():
    given = messages()
    for kind, text, pattern in shown():
        if kind is not None:
            assert any(
                of in (None, kind) and (pattern.fullmatch(message) or like(message).fullmatch(text))
                for of, message in given
            ), text


# Pages -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.name)
def test_every_block_of_python_is_an_example_that_runs(page):
    text = page.read_text()
    for block in re.findall(r"^```(?:python|py|pycon)\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        assert block.startswith(">>> "), block
        assert block.endswith("\n\n"), (
            f"without a blank line, doctest takes ``` for expected output: {block}"
        )
    assert "doctest: +SKIP" not in text
    assert not re.search(
        r"^```\n", re.sub(r"^```\w+\n.*?^```\n", "", text, flags=re.M | re.S), re.M
    )


def test_every_page_is_in_the_navigation():
    named = set(re.findall(r"([\w.-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    assert {page.name for page in PAGES} <= named
    there = {page.name for page in PAGES} | {"CHANGELOG.md", "CONTRIBUTING.md"}
    # Pages made of README files, which MkDocs would take for index pages.
    there |= {"benchmarks.md", "overview.md"}
    made = {path.rpartition("/")[2] for path in reference.pages() if "/ops/" not in path}
    assert made <= named
    assert named <= there | made


PROSE = [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "README.md", ROOT / "bench/README.md"]

MADE = ("build/", "bench/results/")
"""Files that the texts name, but that only tools create."""

ABSENT = {"fastops.experimental": "a file that does not exist yet"}


def quoted(page):
    """Return the inline code of a page, without code blocks."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return set(re.findall(r"`([^`\n]+)`", text))


def test_files_named_in_pages_exist():
    folders = ("fastops", "tests", "tools", "bench", "examples", "docs", ".ci")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*")]
    there = {f"/{path.relative_to(ROOT)}" for path in [*files, *ROOT.iterdir()]}
    named = re.compile(r"(\.\./)?([\w.*-]+/)+[\w.*-]*|[\w-]+\.(py|pyx|pxd|h|toml|md|json|pbtxt)")
    for page in PROSE:
        for text in quoted(page):
            if named.fullmatch(text) and not text.startswith(MADE):
                end = "/" + text.removeprefix("../").rstrip("/")
                paths = [path for path in there if path.endswith(end)]
                assert paths or fnmatch.filter(there, f"*{end}"), (page.name, text)


def test_names_of_the_package_exist():
    for page in PROSE:
        for text in quoted(page):
            if (match := re.match(r"fastops(\.\w+)+", text)) and match[0] not in ABSENT:
                assert pkgutil.resolve_name(match[0]) is not None, page.name
    for name in ABSENT:
        with pytest.raises((AttributeError, ImportError)):
            pkgutil.resolve_name(name)


def test_each_mechanism_has_its_diagram():
    text = (DOCS / "how-it-works.md").read_text()
    sections = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    assert len(sections) == 6
    for section in sections:
        assert section.count("```mermaid") == 1
        assert "accTitle: " in section


# The glossary ------------------------------------------------------------------------------------

WORDS = {
    *("Account", "Bar", "Entry", "Fallback", "Guard", "Hit", "Key", "Miss", "Patch point", "Plan"),
    *("Recording", "Replay", "Signature", "Specialize", "Stand-in", "Trace", "Verification"),
}
"""Words that the glossary must define."""


def entries_of_the_glossary():
    """Yield each word of the glossary, its definition, and the code that it names."""
    _, *entries = re.split(r"^## ", (DOCS / "glossary.md").read_text(), flags=re.MULTILINE)
    for entry in entries:
        word, _, text = entry.partition("\n")
        definition, _, code = text.partition("\nCode: ")
        yield word, definition, re.findall(r"`([^`]+)`", code)


def test_the_glossary_defines_the_words_in_their_order():
    words = [word for word, _, _ in entries_of_the_glossary()]
    assert set(words) >= WORDS
    assert words == sorted(words)


def test_the_code_that_the_glossary_names_exists():
    for word, definition, code in entries_of_the_glossary():
        assert len(definition.split()) > 10, word
        assert code, word
        *modules, last = code
        if last.endswith(".h"):
            (name,) = modules
            assert re.search(rf"^class {name} {{$", (ROOT / last).read_text(), re.MULTILINE), word
        else:
            for name in code:
                assert name.startswith("fastops."), word
                assert pkgutil.resolve_name(name) is not None, word


# Links -------------------------------------------------------------------------------------------


def test_links_in_the_sources_lead_to_files():
    for page in [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "bench/README.md"]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
        for target in re.findall(r"\]\(([^()\s#]+)(?:#[\w-]+)?\)", text):
            if ":" in target or target.startswith("reference/"):
                continue
            assert (page.parent / target).exists(), (page.name, target)


def test_the_link_checker_finds_broken_links(tmp_path, capsys):
    (tmp_path / "a.html").write_text('<p id="x"><a href="b.html#y">b</a><a href="#x">x</a>')
    (tmp_path / "b.html").write_text('<p id="y"><a href="https://elsewhere.org">away</a>')
    assert links.main([str(tmp_path)]) == 0
    (tmp_path / "b.html").write_text(
        '<a href="a.html#z"></a><a href="c.html"></a><script src="https://elsewhere.org/x.js">'
    )
    assert links.main([str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "a.html leads to b.html#y: there is no such anchor" in said
    assert "b.html leads to a.html#z: there is no such anchor" in said
    assert "b.html leads to c.html, which is not there" in said
    assert "b.html loads https://elsewhere.org/x.js" in said
