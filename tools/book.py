#!/usr/bin/env python3
"""Writes the source of the book: the guide, the other pages of the repository, and the files that they link to.

    tools/book.py FOLDER          then: mdbook build FOLDER
    tools/book.py FOLDER --check  also follows every link of the written pages

The pages link to each other by their places in the repository, which GitHub and editors need. In the book the guide lies at the top, the
pages of `docs/` under `reference/` and all other files under `repository/`, and the links are changed accordingly. A linked source file
becomes a page with its code, and a linked folder a list of its files. No relative link leads out of the book.
"""

import re
import subprocess
import sys
from os.path import normpath, relpath
from pathlib import Path

from check_links import Checker, check_markdown

ROOT = Path(__file__).resolve().parent.parent
GUIDE = "docs/guide/"

# The pages of the book besides the guide, by part.
PARTS = {
    "Reference": ["docs/operations.md", "docs/derivatives.md", "docs/accuracy.md", "docs/comparison.md", "docs/performance.md", "docs/distributed.md", "docs/platforms.md", "docs/reliability.md"],
    "The repository": ["README.md", "examples/README.md", "CONTRIBUTING.md", "docs/levels.md", "CHANGELOG.md"],
}
LANGUAGES = {".rs": "rust,ignore", ".py": "python", ".sh": "sh", ".slurm": "sh", ".toml": "toml"}
LINK = re.compile(r"(!?\[(?:[^\[\]]|\[[^\]]*\])*\]\()([^)\s]+)(\))")

BOOK = """[book]
title = "Wengert: the guide"
language = "en"
src = "src"

[output.html]
no-section-label = true
# Hosts look for a page about missing pages at the top of a site only.
input-404 = ""
additional-css = ["book.css"]

[output.html.fold]
enable = true

[output.html.print]
enable = false

[output.html.playground]
runnable = false
"""

# Lines of code have up to 120 letters. Pictures have a white background, which needs a margin on a dark page.
STYLE = """:root { --content-max-width: 940px; }
.content pre > code { font-size: 1.3rem; }
.content main img { max-width: 100%; height: auto; background: #ffffff; border-radius: 4px; }
.content main table { margin-inline: 0; }
@media (max-width: 620px) { .content pre > code { font-size: 1.1rem; } }
"""


def tracked():
    """Returns the paths of the files of the repository that git knows or does not ignore."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return {name for name in listed if name and (ROOT / name).is_file()}


def place(path, files):
    """Returns the place in the book of a file or folder of the repository."""
    if path not in files:
        # A folder: its page, if it has one, or a list of its files.
        return place(f"{path}/README.md", files) if f"{path}/README.md" in files else f"repository/{path}/files.md"
    if path.startswith(GUIDE):
        return path[len(GUIDE) :]
    if path.startswith("docs/"):
        return f"reference/{path[5:]}"
    if path.endswith("README.md"):
        # mdbook would rename it.
        return f"repository/{path[:-9]}index.md" if "/" in path else "repository/wengert.md"
    is_source = not path.endswith((".md", ".svg", ".png", ".gif", ".jpg"))
    return f"repository/{path}.md" if is_source else f"repository/{path}"


class Book:
    """The folder of the book, the files of the repository, and the places of the pages that are written already."""

    def __init__(self, folder):
        self.folder = folder
        self.files = tracked()
        self.written = {}

    def write(self, path):
        """Writes a file or folder of the repository and, once each, what it links to. Returns its place in the book."""
        target = place(path, self.files)
        if target in self.written:
            return target
        self.written[target] = path
        out = self.folder / target
        out.parent.mkdir(parents=True, exist_ok=True)
        if path not in self.files:
            if f"{path}/README.md" in self.files:
                del self.written[target]
                return self.write(f"{path}/README.md")
            inside = sorted(name for name in self.files if name.startswith(f"{path}/") and "/" not in name[len(path) + 1 :])
            rows = [f"- [`{name[len(path) + 1:]}`]({relpath(self.write(name), Path(target).parent)})\n" for name in inside]
            out.write_text(f"# `{path}`\n\n{''.join(rows)}", encoding="utf-8")
        elif path.endswith(".md"):
            out.write_text(self.page(path, target), encoding="utf-8")
        elif target.endswith(".md"):
            try:
                code = (ROOT / path).read_text(encoding="utf-8")
            except UnicodeDecodeError:
                code = "(This file is not a text.)\n"
            fence = "````"
            out.write_text(f"# `{path}`\n\n{fence}{LANGUAGES.get(Path(path).suffix, 'text')}\n{code}{fence}\n", encoding="utf-8")
        else:
            out.write_bytes((ROOT / path).read_bytes())
        return target

    def page(self, path, target):
        """Returns a page with its links changed to the places in the book."""
        folder, lines, fence = Path(path).parent, [], False

        def changed(match):
            before, link, after = match.groups()
            name, hash_mark, anchor = link.partition("#")
            if not name or "://" in name or name.startswith("mailto:"):
                return match[0]
            linked = normpath(folder / name)
            if not (ROOT / linked).exists():
                sys.exit(f"{path}: {link} does not exist")
            return f"{before}{relpath(self.write(linked), Path(target).parent)}{hash_mark}{anchor}{after}"

        for line in (ROOT / path).read_text(encoding="utf-8").split("\n"):
            if re.match(r"\s*(```|~~~)", line):
                fence = not fence
            lines.append(line if fence else LINK.sub(changed, line))
        return "\n".join(lines)

    def summary(self):
        """Returns the table of contents: the guide's own, and the other parts. Linked sources come last."""
        lines = [(ROOT / GUIDE / "SUMMARY.md").read_text(encoding="utf-8").rstrip()]
        for _, link, _ in LINK.findall(lines[0]):
            self.write(normpath(GUIDE + link))
        for part, paths in PARTS.items():
            lines.append(f"\n# {part}\n")
            lines += [f"- [{title(ROOT / path)}]({self.write(path)})" for path in paths]
        listed = {link for line in lines for _, link, _ in LINK.findall(line)}
        rest = sorted(target for target in self.written if target.endswith(".md") and target not in listed)
        lines.append("- [Linked files](repository/files.md)")
        (self.folder / "repository").mkdir(exist_ok=True)
        rows = [f"- [`{self.written[target]}`]({relpath(target, 'repository')})\n" for target in rest]
        (self.folder / "repository/files.md").write_text(f"# Linked files\n\n{''.join(rows)}", encoding="utf-8")
        lines += [f"  - [{self.written[target]}]({target})" for target in rest]
        return "\n".join(lines) + "\n"


def title(page):
    """Returns the first heading of a page."""
    found = re.search(r"^# (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1].replace("`", "") if found else page.stem


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    if len(arguments) != 1 or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return 0 if arguments[:1] in (["-h"], ["--help"]) else 2
    folder = Path(arguments[0]).resolve()
    source = folder / "src"
    source.mkdir(parents=True, exist_ok=True)
    book = Book(source)
    (source / "SUMMARY.md").write_text(book.summary(), encoding="utf-8")
    (folder / "book.toml").write_text(BOOK, encoding="utf-8")
    (folder / "book.css").write_text(STYLE, encoding="utf-8")
    if "--check" in sys.argv[1:]:
        checker = Checker()
        for page in sorted(source.rglob("*.md")):
            check_markdown(checker, page, source)
        print("\n".join(checker.broken + [f"{checker.count} links in the source of the book, {len(checker.broken)} broken"]))
        return 1 if checker.broken else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
