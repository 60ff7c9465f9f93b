"""Adds the pages of the repository to the site. A page has the same path in the site as in the repository.

The Chinese site has the content of `docs/guard.zh-CN.md` at the path `docs/guard.md`. If a page has no translation, the
Chinese site has the English page. If a page links to a source file, the site has a page with the source file.
"""

import fnmatch
import re
from pathlib import Path

from mkdocs.structure.files import File, InclusionLevel

ROOT = Path(__file__).resolve().parents[2]

CHINESE = "zh-CN"

#: The pages outside `docs`.
TOP_PAGES = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]

#: The icon of the site, which the consoles also have.
ICON = "crates/tamis-console/files/icon.svg"

#: The languages of code blocks with source files.
LANGUAGES = {".rs": "rust", ".toml": "toml", ".service": "ini", ".py": "python", ".sh": "sh", ".yaml": "yaml"}

#: A link or an image in Markdown. The group is the target without the anchor.
LINK = re.compile(r"\]\(([^)\s#]+)")


def translated(uri):
    """Returns the path of the Chinese translation of a page. The file may not exist."""
    return uri.removesuffix(".md") + f".{CHINESE}.md"


def has_translation(uri):
    """Tests whether a page has a Chinese translation."""
    return uri.endswith(".md") and (ROOT / translated(uri)).exists()


def resolve(page, target):
    """Returns the path in the repository of the target of a link, or `None` if the target is no file of the repository.

    A link to a folder leads to the README of the folder.
    """
    path = (ROOT / page).parent.joinpath(target).resolve()
    if path.is_dir():
        path /= "README.md"
    if path.is_file() and path.is_relative_to(ROOT):
        return path.relative_to(ROOT).as_posix()
    return None


def on_files(files, config):
    """Adds all pages, and the images and source files to which the pages link."""
    # The site map needs the address of the site, and the page 404 needs the path of the site.
    config.theme.static_templates.clear()
    for file in [file for file in files if file.src_uri.endswith(".map")]:
        files.remove(file)
    paths = [ROOT / name for name in TOP_PAGES] + sorted((ROOT / "docs").rglob("*.md"))
    uris = [path.relative_to(ROOT).as_posix() for path in paths]
    pages = [uri for uri in uris if not uri.endswith(f".{CHINESE}.md")]
    known, waiting = set(pages), list(pages)
    for uri in waiting:
        file = page_file(config, uri) if uri.endswith(".md") else linked_file(config, uri)
        file.inclusion = InclusionLevel.INCLUDED if uri in pages else InclusionLevel.NOT_IN_NAV
        files.append(file)
        new = [linked for linked in links(file, uri) if linked not in known]
        known.update(new)
        waiting += dict.fromkeys(new)
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ROOT / ICON)))
    config.nav = expand(config.nav, pages)
    return files


def page_file(config, uri):
    """Returns a page in the language of the site, or in English."""
    is_translated = config.extra["language"] == CHINESE and has_translation(uri)
    return File.generated(config, uri, abs_src_path=str(ROOT / (translated(uri) if is_translated else uri)))


def links(file, uri):
    """Returns the files of the repository to which a page links.

    A translated page counts as its English page.
    """
    if not uri.endswith(".md"):
        return []
    found = [resolve(uri, target) for target in LINK.findall(file.content_string)]
    return [path.replace(f".{CHINESE}.md", ".md") for path in found if path]


def linked_file(config, uri):
    """Returns a page with the text of a source file. An image stays an image."""
    path = ROOT / uri
    if path.suffix in {".png", ".svg"}:
        return File.generated(config, uri, abs_src_path=str(path))
    text = path.read_text("utf-8")
    language = LANGUAGES.get(path.suffix, "text")
    content = f'# {path.name}\n\n`````{language} title="{uri}"\n{text}\n`````\n'
    return File.generated(config, f"{uri}.md", content=content)


def expand(nav, pages):
    """Replaces each pattern of the navigation by the pages that match and that the navigation does not name."""
    named = set(names(nav))

    def entries(entry):
        if isinstance(entry, dict):
            return [{title: to if isinstance(to, str) else expand_all(to) for title, to in entry.items()}]
        matches = fnmatch.filter(pages, entry)
        return [page for page in matches if page not in named] if "*" in entry else [entry]

    def expand_all(nav):
        return [new for entry in nav for new in entries(entry)]

    return expand_all(nav)


def names(nav):
    """Returns the pages that a navigation names."""
    for entry in nav:
        for to in entry.values() if isinstance(entry, dict) else [entry]:
            yield from [to] if isinstance(to, str) else names(to)
