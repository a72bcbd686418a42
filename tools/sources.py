"""Reads the Rust sources of the workspace for the scripts beside this file.

It finds the files, leaves out tests, and blanks comments and literals. The scanner knows Rust's comments, strings, raw strings,
character literals and lifetimes. It knows no grammar.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Folders and files that hold tests only.
TEST_FOLDERS = {"tests", "testing"}
TEST_FILE = "tests.rs"


def rust_files(folder, with_tests=False):
    """Returns the Rust files under a folder of the workspace in alphabetical order, without files of tests unless `with_tests`."""
    files = sorted((ROOT / folder).rglob("*.rs"))
    return [file for file in files if "target" not in file.parts and (with_tests or not is_test_file(file))]


def is_test_file(file):
    """Returns True if a file holds tests only: it is named `tests.rs` or lies under `tests/` or `testing/`."""
    relative = file.relative_to(ROOT)
    return relative.name == TEST_FILE or any(part in TEST_FOLDERS for part in relative.parts[:-1])


def without_test_modules(text):
    """Returns the lines of a file without each `#[cfg(test)] mod NAME`, with a body or `;`, at the margin."""
    lines = text.splitlines()
    kept, at = [], 0
    while at < len(lines):
        if lines[at] == "#[cfg(test)]":
            item = at + 1
            while item < len(lines) and lines[item].startswith("#["):
                item += 1
            if item < len(lines) and lines[item].startswith(("mod ", "pub mod ", "pub(crate) mod ")):
                end = item
                if not lines[item].rstrip().endswith((";", "}")):
                    while end < len(lines) and lines[end] != "}":
                        end += 1
                at = end + 1
                continue
        kept.append(lines[at])
        at += 1
    return kept


def blanked(text, keep_comments=False):
    """Returns the text with literals, and comments unless they are kept, replaced by spaces.

    Line breaks stay, so that line numbers and columns agree with the file.
    """
    out, at, length = [], 0, len(text)

    def blank(end):
        out.append("".join(c if c == "\n" else " " for c in text[at:end]))
        return end

    while at < length:
        two = text[at : at + 2]
        if two == "//":
            end = text.find("\n", at)
            end = length if end < 0 else end
        elif two == "/*":
            end = _end_of_block_comment(text, at)
        elif text[at] == '"':
            at = blank(_end_of_quoted(text, at, '"'))
            continue
        elif text[at] in "rbc" and _raw_string_end(text, at):
            at = blank(_raw_string_end(text, at))
            continue
        elif text[at] == "'" and _is_character(text, at):
            at = blank(_end_of_quoted(text, at, "'"))
            continue
        else:
            out.append(text[at])
            at += 1
            continue
        if keep_comments:
            out.append(text[at:end])
            at = end
        else:
            at = blank(end)
    return "".join(out)


def _end_of_block_comment(text, start):
    depth, at = 0, start
    while at < len(text):
        if text.startswith("/*", at):
            depth, at = depth + 1, at + 2
        elif text.startswith("*/", at):
            depth, at = depth - 1, at + 2
            if depth == 0:
                return at
        else:
            at += 1
    return len(text)


def _end_of_quoted(text, start, quote):
    at = start + 1
    while at < len(text) and text[at] != quote:
        at += 2 if text[at] == "\\" else 1
    return at + 1


def _raw_string_end(text, start):
    """Returns the end of a raw string that begins at `start`, or None."""
    if start and (text[start - 1].isalnum() or text[start - 1] == "_"):
        return None
    at = start
    while at < len(text) and text[at] in "bc":
        at += 1
    if text[at : at + 1] != "r":
        return None
    at += 1
    hashes = 0
    while text[at : at + 1] == "#":
        hashes, at = hashes + 1, at + 1
    if text[at : at + 1] != '"':
        return None
    close = text.find('"' + "#" * hashes, at + 1)
    return len(text) if close < 0 else close + 1 + hashes


def _is_character(text, start):
    """Returns True if a `'` begins a character and not a lifetime."""
    return text[start + 1 : start + 2] == "\\" or text[start + 2 : start + 3] == "'"
