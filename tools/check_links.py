#!/usr/bin/env python3
"""Follows every link of the Markdown pages, and of folders of HTML pages, to its file and its anchor.

    tools/check_links.py                           the pages of the repository
    tools/check_links.py target/doc /tmp/site      the pages, and every HTML file of two folders

A link to a file must lead to a file inside its folder (the repository for Markdown pages), and its anchor to a heading or an element with this
name. Addresses of other hosts are not fetched: only their form is checked. A page `trait._.html` is refused: rustdoc writes it for a trait
that is exported without its name, in a module that another crate exports again. Prints each problem with its page, and ends with 1 if
there is one.
"""

import re
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).resolve().parent.parent

# A link or an image of Markdown: `[text](target)`, `[text](target "title")`. Definitions: `[name]: target`.
MARKDOWN_LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\s{0,3}\[[^\]]+\]:\s+(\S+)", re.MULTILINE)
HTML_LINK = re.compile(r"<(?:a|link|img|script|iframe|source|image|object)\b[^>]*?\s(?:href|src|data)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
HTML_NAME = re.compile(r"<[a-zA-Z][^>]*?\s(?:id|name)=(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))")
# Texts that contain no links.
HTML_TEXT = re.compile(r"<!--.*?-->|<script\b(?![^>]*\ssrc=).*?</script>|<style\b.*?</style>", re.DOTALL | re.IGNORECASE)
# A page of rustdoc that leads to the public path of an item, with the anchor of the link.
REDIRECTION = re.compile(r"<meta http-equiv=\"refresh\" content=\"0;URL=([^\"]*)\">")
# The lines of a source file, as rustdoc writes their range: `#12-20`.
LINES = re.compile(r"^(\d+)-(\d+)$")
HOST = re.compile(r"^[A-Za-z0-9.-]+\.[A-Za-z]{2,}(:\d+)?$|^localhost(:\d+)?$")


def without_code(text):
    """Returns a Markdown text without its code blocks and code spans. The lines keep their numbers."""
    lines, fence = [], None
    for line in text.split("\n"):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if fence is None and mark:
            fence = mark[1]
        elif fence is not None:
            if mark and mark[1].startswith(fence):
                fence = None
        elif not line.startswith("    ") or re.match(r"\s*[-*\d]", line):
            lines.append(line)
            continue
        lines.append("")
    # A code span inside the text of a link stays a link.
    return re.sub(r"(`+)(?!`)(.+?)(?<!`)\1(?!`)", "", "\n".join(lines))


def slugs(text):
    """Returns the anchors that GitHub and mdbook give to the headings of a Markdown text."""
    found, counts = set(), {}
    fence = False
    for line in text.split("\n"):
        if re.match(r"\s*(```|~~~)", line):
            fence = not fence
        heading = None if fence else re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).replace("`", "")
            slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
            count = counts.get(slug, 0)
            counts[slug] = count + 1
            found.add(f"{slug}-{count}" if count else slug)
    found.update(match[1] or match[2] or match[3] for match in HTML_NAME.finditer(text))
    return found


class Checker:
    """The pages that were read, and the links that lead nowhere."""

    def __init__(self):
        self.anchors = {}
        self.broken = []
        self.count = 0

    def names(self, path):
        """Returns the anchors of a file, or None if it has none by its kind."""
        if path not in self.anchors:
            if path.suffix == ".md":
                self.anchors[path] = slugs(path.read_text(encoding="utf-8"))
            elif path.suffix == ".html":
                text = path.read_text(encoding="utf-8")
                to = REDIRECTION.search(text)
                if to:
                    self.anchors[path] = self.names(Path(normal(path.parent / unquote(to[1]))))
                else:
                    self.anchors[path] = {unescape(m[1] or m[2] or m[3]) for m in HTML_NAME.finditer(text)}
            else:
                self.anchors[path] = None
        return self.anchors[path]

    def has_anchor(self, path, anchor):
        """Returns true if a page has an anchor, as written or decoded, or both ends of a range of lines."""
        names = self.names(path)
        if names is None or not anchor:
            return True
        lines = LINES.match(anchor)
        if lines and "src" in path.parts:
            return lines[1] in names and lines[2] in names
        return anchor in names or unquote(anchor) in names

    def check(self, page, link, folder):
        """Follows one link of a page. Local links must stay in `folder`."""
        self.count += 1
        parts = urlsplit(link)
        if parts.scheme in ("http", "https"):
            if not HOST.match(parts.netloc) or re.search(r"[\s<>]", link):
                self.report(page, link, "is no address")
            return
        if parts.scheme in ("mailto", "data", "javascript") or is_rustdocs_own(page, link):
            return
        if parts.scheme or parts.netloc:
            self.report(page, link, "has an unknown scheme")
            return
        path = unquote(parts.path)
        target = page if not path else (page.parent / path)
        # `resolve` would follow links of the file system, for example of the licences.
        target = Path(re.sub(r"/+$", "", str(target)))
        target = Path(normal(target))
        if not target.is_relative_to(folder):
            self.report(page, link, "leaves the folder")
        elif target.is_dir():
            # A web server shows the index of a folder. In the repository, a folder is shown as a list.
            if page.suffix == ".html" and not (target / "index.html").is_file():
                self.report(page, link, "is a folder without index.html")
        elif not target.is_file():
            self.report(page, link, "does not exist")
        elif not self.has_anchor(target, parts.fragment):
            self.report(page, link, "has no such anchor")

    def report(self, page, link, problem):
        """Records a broken link."""
        name = page.relative_to(ROOT) if page.is_relative_to(ROOT) else page
        self.broken.append(f"{name}: {link} {problem}")


def is_rustdocs_own(page, link):
    """Returns true for a link that rustdoc writes without a target, whatever the sources say."""
    return (
        # These pages expect a page about all crates, which only the unstable option `--enable-index-page` makes.
        (page.name in ("help.html", "settings.html") and link == "./index.html")
        # The list of all items of a crate that is re-exported as a module.
        or (page.name == "index.html" and link == "all.html")
        # The list of implementations of a trait from a crate that was not documented. The page works without it.
        or "/trait.impl/" in link
        # Links in the documentation of other packages.
        or link.startswith("ProgressIterator::")
    )


def normal(path):
    """Returns a path without `.` and `..`."""
    parts = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        elif part != ".":
            parts.append(part)
    return str(Path(*parts))


def markdown_pages():
    """Returns the Markdown files of the repository that git knows or does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    # Markdown under `src` is a part of rustdoc's pages, whose links name items.
    return [ROOT / name for name in listed if (ROOT / name).is_file() and "/src/" not in name]


def check_markdown(checker, page, folder):
    """Follows the links of a Markdown page."""
    text = without_code(page.read_text(encoding="utf-8"))
    for match in MARKDOWN_LINK.finditer(text):
        checker.check(page, match[1] or match[2], folder)
    for match in HTML_LINK.finditer(text):
        checker.check(page, unescape(match[1] or match[2] or match[3] or ""), folder)


def check_html(checker, page, folder):
    """Follows the links of an HTML page, each target once. Refuses the page of a trait without a name."""
    if page.name == "trait._.html":
        checker.report(page, page.name, "is the page of a trait without a name; src/lib.rs shows how `tensor` avoids it")
    text = page.read_text(encoding="utf-8")
    links = {unescape(m[1] or m[2] or m[3] or "") for m in HTML_LINK.finditer(HTML_TEXT.sub("", text))}
    for link in sorted(links):
        checker.check(page, link, folder)


def control():
    """Checks the checker: it must report each problem of three small pages, and no other."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        (folder / "a.md").write_text("# A `b` c\n[1](#a-b-c) [2](b.html#x) `[3](no)` [4](#no) [5](no.md) ![6](../no.svg)\n```\n[7](no)\n```\n")
        (folder / "b.html").write_text('<a id=x href="a.md#a-b-c"></a><img src="no.png"><a href="https://nohost">')
        checker = Checker()
        check_markdown(checker, folder / "a.md", folder)
        check_html(checker, folder / "b.html", folder)
        (folder / "trait._.html").write_text("<a href=b.html></a>")
        check_html(checker, folder / "trait._.html", folder)
        found = [line.split(": ", 1)[1].split(" ")[0] for line in checker.broken]
        assert found == ["#no", "no.md", "../no.svg", "https://nohost", "no.png", "trait._.html"], found


def main():
    if any(argument in ("-h", "--help") for argument in sys.argv[1:]):
        print(__doc__)
        return 0
    control()
    checker = Checker()
    pages = markdown_pages()
    for page in pages:
        check_markdown(checker, page, ROOT)
    print(f"{checker.count} links in {len(pages)} Markdown pages")
    for argument in sys.argv[1:]:
        folder, before = Path(argument).resolve(), checker.count
        pages = sorted(folder.rglob("*.html"))
        if not pages:
            checker.broken.append(f"{argument}: no HTML page")
        for page in pages:
            check_html(checker, page, folder)
        print(f"{checker.count - before} links in {len(pages)} HTML pages of {argument}")
    for line in sorted(set(checker.broken)):
        print(line)
    print(f"{len(set(checker.broken))} broken")
    return 1 if checker.broken else 0


if __name__ == "__main__":
    sys.exit(main())
