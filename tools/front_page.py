#!/usr/bin/env python3
"""Writes the front page of the web site, the gallery of the examples' results, and pages that rustdoc lacks.

    tools/front_page.py FOLDER     the folder of `tools/site.sh`, with `api`, `results` and perhaps `book`

The text of the front page is the beginning of README.md. The gallery has the examples of the table in examples/README.md that have results,
in their order.
"""

import re
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --ink: #262626; --soft: #5c5c5c; --paper: #ffffff; --shade: #f3f4f6; --line: #dddddd; --link: #14588f; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e6e6e6; --soft: #a8a8a8; --paper: #16181c; --shade: #22252b; --line: #3a3e46; --link: #7db8ec; }}
}}
body {{ font: 17px/1.55 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 900px; margin: 0 auto; padding: 1.5em 1em 4em; }}
h1 {{ font-size: 2em; margin: 0.6em 0 0.2em; }}
h2 {{ font-size: 1.25em; margin: 2em 0 0.4em; border-bottom: 1px solid var(--line); }}
a {{ color: var(--link); }}
pre {{ background: var(--shade); padding: 0.8em 1em; overflow-x: auto; font-size: 0.82em; line-height: 1.45; border-radius: 6px; }}
code {{ font-family: ui-monospace, monospace; }}
img {{ max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; }}
p.small {{ color: var(--soft); font-size: 0.9em; }}
ul.doors {{ list-style: none; padding: 0; display: grid; grid-template-columns: repeat(auto-fit, minmax(240px, 1fr)); gap: 0.8em; }}
ul.doors li {{ background: var(--shade); border-radius: 6px; padding: 0.8em 1em; }}
ul.doors a {{ font-weight: 600; }}
ul.doors code {{ border: 1px solid var(--line); border-radius: 4px; padding: 0 0.35em; }}
</style>
</head>
<body>
{body}
</body>
</html>
"""

# A page that leads to another one, for browsers without scripts too.
REDIRECT = '<!doctype html>\n<meta charset="utf-8">\n<meta http-equiv="refresh" content="0; url={0}">\n<a href="{0}">{1}</a>\n'


def inline(text):
    """Returns a line of Markdown as HTML: code, emphasis, and the texts of links."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text.replace("&emsp;", "")).strip()
    text = re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))
    return re.sub(r"\*([^*]+)\*", r"<em>\1</em>", text)


# A row of the table of examples: the name, perhaps its chapter in the guide, the idea, the result.
ROW = re.compile(r"^\| (?:&emsp; )?\[`([^`]+)`\]\([^)]*\)(?: \(\[chapter\]\(\.\./docs/guide/([^)]*)\.md\)\))? \|(.*)\|(.*)\|$", re.MULTILINE)


def examples():
    """Returns the name, the chapter or "", and the idea of each example, in the order of the course."""
    rows = ROW.findall((ROOT / "examples/README.md").read_text(encoding="utf-8"))
    return [(name, chapter, idea.strip()) for name, chapter, idea, _ in rows]


def gallery(site):
    """Writes the page of the results. Returns the number of examples on it."""
    body, count = ['<p><a href="../index.html">Wengert</a></p>', "<h1>Results of the examples</h1>"], 0
    for name, chapter, idea in examples():
        folder = site / "results" / name
        files = sorted(folder.iterdir()) if folder.is_dir() else []
        if not files:
            continue
        count += 1
        page = f"book/{chapter}.html"
        read = f' (<a href="../{page}">chapter</a>)' if chapter and (site / page).is_file() else ""
        body.append(f'<h2 id="{name}">{escape(name)}</h2>\n<p>{inline(idea)}{read}</p>')
        for file in files:
            link = f"{name}/{file.name}"
            if file.suffix in (".svg", ".png"):
                body.append(f'<p><a href="{link}"><img src="{link}" alt="{escape(file.stem)}" loading="lazy"></a></p>')
            else:
                body.append(f'<p><a href="{link}">{escape(file.name)}</a></p>')
    if not count:
        body.append("<p>No example has run yet.</p>")
    (site / "results/index.html").write_text(PAGE.format(title="Results of the examples", body="\n".join(body)), encoding="utf-8")
    return count


def front(site, results):
    """Writes the front page: the beginning of README.md, and links to the parts that are there."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    name, sentence = re.match(r"# (.*)\n\n(.*)\n", readme).groups()
    code = re.search(r"```rust\n(.*?)```", readme, re.DOTALL)[1]
    has_book = (site / "book/index.html").is_file()
    chapters = "book/course/introduction.html"
    course = chapters if (site / chapters).is_file() else "book/repository/examples/index.html"
    folder = "crates" if (site / "crates").is_dir() else "api"
    machines = f"{folder}/wengert_distributed/index.html"
    doors = [
        ("book/index.html", "The guide", "broadcasting, gradients, training, second order, errors; from PyTorch, candle and burn", has_book),
        ("api/wengert/index.html", "The documentation", "every type and function, with examples; press <code>s</code> to search", True),
        ("results/index.html", "Pictures and reports", f"the results of {results} examples", results > 0),
        (course, "The course", "numbered programs with a chapter each; the first one trains a network", has_book),
        (machines, "Several machines", "the documentation of training over MPI", (site / machines).is_file()),
        ("book/reference/operations.html", "Operations", "behaviour at ties and edges, derivatives, accuracy", has_book),
        ("book/reference/performance.html", "Speed", "measurements beside other frameworks, losses included", has_book),
    ]
    items = [f'<li><a href="{link}">{title}</a><br>{text}</li>' for link, title, text, there in doors if there]
    body = [f"<h1>{escape(name)}</h1>", f"<p>{inline(sentence)}</p>", '<ul class="doors">', *items, "</ul>", f"<pre><code>{escape(code)}</code></pre>"]
    picture = ROOT / "docs/guide/pictures/burgers.svg"
    (site / "burgers.svg").write_bytes(picture.read_bytes())
    body.append('<p><a href="burgers.svg"><img src="burgers.svg" alt="Burgers\' equation solved by a network, beside the exact solution, at three times"></a></p>')
    body.append('<p class="small">A network that solves an equation in seconds on two cores. The dashes are the network; the wide line is the exact solution.</p>')
    (site / "index.html").write_text(PAGE.format(title=f"{name}: autograd for small models", body="\n".join(body)), encoding="utf-8")


def main():
    if len(sys.argv) != 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if sys.argv[1:] in (["-h"], ["--help"]) else 2
    site = Path(sys.argv[1])
    front(site, gallery(site))
    (site / "api/index.html").write_text(REDIRECT.format("wengert/index.html", "wengert"), encoding="utf-8")
    if (site / "crates").is_dir():
        (site / "crates/index.html").write_text(REDIRECT.format("wengert_tensor/index.html", "wengert_tensor"), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
