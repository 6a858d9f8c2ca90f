"""Check the built site: internal links lead somewhere, and nothing is loaded from other servers.

``python -m tools.website.links build/site`` prints errors, and fails if there are any.
"""

import argparse
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href")}
"""Attributes with addresses that a browser loads immediately."""

NOT_LOADED = ("canonical", "next", "prev", "alternate", "edit")
"""Kinds of links that a browser does not load."""


class Page(HTMLParser):
    """The anchors and addresses of a page.

    Attributes
    ----------
    anchors : set of str
        The names that a link may have after ``#``.
    addresses : list of tuple
        Addresses, and whether a browser loads them immediately.
    """

    def __init__(self, text):
        super().__init__()
        self.anchors, self.addresses = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors.update(attributes[name] for name in ("id", "name") if attributes.get(name))
        for name in ("href", "src"):
            if attributes.get(name):
                loaded = (tag, name) in LOADED and attributes.get("rel") not in NOT_LOADED
                self.addresses.append((attributes[name], loaded))


def check(folder):
    """Return the errors, and the number of links.

    Parameters
    ----------
    folder : pathlib.Path
        The site.

    Returns
    -------
    wrong : list of str
        A line for each fault.
    count : int
        The number of checked links.
    """
    folder = folder.resolve()
    pages = {path: Page(path.read_text()) for path in sorted(folder.rglob("*.html"))}
    wrong, count = [], 0
    for path, page in pages.items():
        shown = path.relative_to(folder)
        for address, loaded in page.addresses:
            parts = urlsplit(address)
            if parts.scheme or parts.netloc:
                if loaded and parts.scheme != "data":
                    wrong.append(f"{shown} loads {address}")
                continue
            count += 1
            if path.name == "404.html":
                continue  # its links begin at the root of the site, which is not known here
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target /= "index.html"
            if not target.is_relative_to(folder) or not target.exists():
                wrong.append(f"{shown} leads to {address}, which is not there")
            elif parts.fragment and target in pages and not _has(pages[target], parts.fragment):
                wrong.append(f"{shown} leads to {address}: there is no such anchor")
    return wrong, count


def _has(page, fragment):
    return fragment in page.anchors or unquote(fragment) in page.anchors


def main(arguments=None):
    """Check a site; return 1 if there are errors."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the site")
    wrong, count = check(parser.parse_args(arguments).folder)
    print(*wrong, f"{count:,} links, {len(wrong)} of them wrong", sep="\n")
    return int(bool(wrong) or not count)


if __name__ == "__main__":
    sys.exit(main())
