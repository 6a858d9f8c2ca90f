"""Hooks that MkDocs calls while it builds the site. `mkdocs.yml` names this file.

The pages in ``docs/`` are used unchanged, since they are also read on GitHub. The site also has the
files of `ELSEWHERE`, the programs of ``examples/``, and the reference, and turns links between them
into links of the site. Diagrams are drawn when the site is built, so that it loads nothing from
other servers.
"""

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tools.website import reference  # noqa: E402

ELSEWHERE = {
    "README.md": "overview.md",  # MkDocs would take a README.md for the index of its folder
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "bench/README.md": "benchmarks.md",
}
"""Pages outside of ``docs/``: their paths in the repository, and in the site."""

WIDE = ("coverage.md", "crashes.md", "install.md", "reference/ops/index.md", "speed.md")
"""Pages with wide tables, which use the space of the table of contents."""

LINK = re.compile(r"(?<!`)(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")

FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.MULTILINE | re.DOTALL)

DIAGRAM = re.compile(r"^```mermaid\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def on_config(config):
    """List the families of ops in the navigation."""
    families = {path for path in reference_pages() if path.startswith("reference/ops/")}
    config.nav = list(_navigation(config.nav, sorted(families - {"reference/ops/index.md"})))
    return config


def _navigation(entries, families):
    for entry in entries:
        title, value = next(iter(entry.items())) if isinstance(entry, dict) else (None, entry)
        if isinstance(value, list):
            yield {title: list(_navigation(value, families))}
        elif value == "reference/ops/":
            yield {title: ["reference/ops/index.md", *families]}
        else:
            yield entry


def on_files(files, config):
    """Add the pages that are not in ``docs/``."""
    made = dict(reference_pages())
    made |= {path: (ROOT / source).read_text() for source, path in ELSEWHERE.items()}
    for program in sorted((ROOT / "examples").glob("*.py")):
        text = program.read_text()
        path = f"examples/{program.name}"
        made[f"{path}.md"] = f"---\ntitle: {path}\n---\n# {path}\n\n````python\n{text}````\n"
    for path, text in made.items():
        inclusion = (
            InclusionLevel.NOT_IN_NAV if path.startswith("examples/") else InclusionLevel.UNDEFINED
        )
        files.append(File.generated(config, path, content=text, inclusion=inclusion))
    return files


_MADE: dict[str, str] = {}


def reference_pages():
    """Return the pages of the reference, which are made only once."""
    if not _MADE:
        _MADE.update(reference.pages())
    return _MADE


def on_page_markdown(markdown, page, config, files):
    """Draw the diagrams of a page, and turn its links in the repository into links in the site."""
    source = page.file.src_uri
    if source in WIDE:
        page.meta["hide"] = ["toc"]
    markdown = _draw(markdown, source, config, files)
    if source.startswith("reference/"):
        return markdown
    place = {path: place for place, path in ELSEWHERE.items()}.get(source, f"docs/{source}")
    parts = FENCE.split(markdown)
    for number in range(0, len(parts), 2):
        parts[number] = LINK.sub(lambda match: _link(match, place, source, files), parts[number])
    return "".join(parts)


def _link(match, place, source, files):
    """Return a link in the site for one in the repository."""
    mark, text, target = match.groups()
    if re.match(r"\w+:|#", target):
        return match[0]
    path, sharp, fragment = target.partition("#")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(place), path))
    found = ELSEWHERE.get(path, path.removeprefix("docs/"))
    for candidate in (found, f"{found}.md"):
        if files.get_file_from_path(candidate) is not None:
            return f"{mark}[{text}]({_relative(candidate, source)}{sharp}{fragment})"
    if path.startswith("docs/") or mark or not (ROOT / path).exists():
        return match[0]  # MkDocs reports the error
    return text if text.startswith("`") else f"{text} (`{path}`)"


def _relative(target, source):
    return posixpath.relpath(target, posixpath.dirname(source) or ".")


def _draw(markdown, source, config, files):
    """Replace the source of each diagram by a picture."""
    count = 0

    def drawn(match):
        nonlocal count
        import mmdr

        count += 1
        path = f"assets/diagrams/{source.removesuffix('.md').replace('/', '-')}-{count}.svg"
        try:
            picture = sized(mmdr.render(match[1]).svg())
        except ValueError as error:
            raise ValueError(f"a diagram of {source}: {error}") from None
        if (old := files.get_file_from_path(path)) is not None:
            files.remove(old)
        files.append(File.generated(config, path, content=picture))
        title = re.search(r"^\s*accTitle: (.+)$", match[1], re.MULTILINE)
        said = title[1] if title else "A diagram"
        shown = f"![{said}]({_relative(path, source)})"
        return f'<figure class="diagram" markdown>\n{shown}\n</figure>'

    return DIAGRAM.sub(drawn, markdown)


def sized(picture):
    """Set the size of a picture that would otherwise fill its container."""
    _, _, width, height = re.search(r'viewBox="([^"]+)"', picture)[1].split()
    return picture.replace('width="100%"', f'width="{width}" height="{height}"', 1)
