"""Changes the Markdown of a page from the rules of GitHub to the rules of the site, and rewrites the links."""

import posixpath
import re

from mkdocs.utils import get_relative_url
from pages import CHINESE, LINK, has_translation, resolve

#: A block of code, an HTML comment, or code in a paragraph.
CODE = re.compile(
    r"^( *)(`{3,}|~{3,}).*?^\1\2[`~]*$"
    r"|(?P<comment><!--.*?-->\n?)"
    r"|(`+)(?!`)(?:(?!\n\n).)+?(?<!`)\4(?!`)",
    re.MULTILINE | re.DOTALL,
)

#: A link in Markdown: the target without the anchor, and the anchor.
TARGET = re.compile(LINK.pattern + r"(#[^)\s]*)?\)")

#: The first line of an item of a list. The group is the sign with the spaces that follow.
ITEM = re.compile(r" *((?:[*+-]|\d+\.) +)\S")

#: The first or the last line of a block of code.
FENCE = re.compile(r" *(`{3,}|~{3,})")

#: The folder of each site in the site of all languages.
FOLDERS = {"en": "", CHINESE: f"{CHINESE}/"}


def on_page_markdown(markdown, page, config, files):
    """Returns the Markdown of a page for the site."""
    uri, language = page.file.src_uri, config.extra["language"]
    other = "en" if language == CHINESE else CHINESE
    page.meta["other_site"] = to_site(page, language, other, page.file.url)
    if page.file.abs_src_path is None:
        page.meta["search"] = {"exclude": True}  # The page shows a source file.
        return markdown
    own = CHINESE if language == CHINESE and has_translation(uri) else "en"
    page.meta["is_translated"] = own == language

    def rewritten(is_code, text):
        return text if is_code else TARGET.sub(lambda it: rewrite(it, page, language, own, files), text)

    return indent("".join(rewritten(*part) for part in parts(markdown)))


def to_site(page, language, other, url):
    """Returns the link from a page to a page of the site of a language."""
    own = FOLDERS[language] + page.file.url
    return get_relative_url(posixpath.normpath(FOLDERS[other] + url) + "/", posixpath.normpath(own) + "/")


def parts(markdown):
    """Splits a page into code and other text, and leaves out HTML comments.

    Returns pairs: whether the text is code, and the text.
    """
    start = 0
    for found in CODE.finditer(markdown):
        yield False, markdown[start : found.start()]
        if not found["comment"]:
            # In a table, GitHub requires a backslash before `|` in code. Python-Markdown would show the backslash.
            line = markdown[markdown.rfind("\n", 0, found.start()) + 1 : found.start()]
            yield True, found[0].replace("\\|", "|") if line.startswith("|") else found[0]
        start = found.end()
    yield False, markdown[start:]


def rewrite(found, page, language, own, files):
    """Returns the link `](target#anchor)` for the site.

    A translated page names the language of the target: `guard.md` is the English page. A page without translation links
    to English pages, so in the Chinese site its link leads to the Chinese page. The headings of the Chinese page have
    other anchors, so a link with an anchor leads to the English page.
    """
    target, anchor = found[1], found[2] or ""
    linked = resolve(page.file.src_uri, target)
    if linked is None:
        return found[0]
    to = "en"
    if linked.endswith(f".{CHINESE}.md"):
        to, linked = CHINESE, linked.replace(f".{CHINESE}.md", ".md")
    elif language == CHINESE and not (has_translation(linked) and (own == CHINESE or anchor)):
        to = CHINESE
    file = files.get_file_from_path(linked) or files.get_file_from_path(f"{linked}.md")
    if file is None:
        return found[0]
    if to == language:
        return f"]({get_relative_url(file.src_uri, page.file.src_uri)}{anchor})"
    return f"]({to_site(page, language, to, file.url)}{anchor})"


def indent(markdown):
    """Indents the content of list items by four spaces a level, as Python-Markdown requires.

    GitHub requires only as many spaces as the sign of the list has.
    """
    lines, widths, fence = [], [], None
    for line in markdown.split("\n"):
        spaces = len(line) - len(line.lstrip(" "))
        while fence is None and line.strip() and widths and spaces < sum(widths):
            widths.pop()
        old, new = sum(widths), 4 * len(widths)
        lines.append(" " * new + line[old:] if line.strip() else "")
        mark, item = FENCE.match(line), ITEM.match(line)
        if fence is not None:
            fence = None if mark and mark[1].startswith(fence) else fence
        elif mark:
            fence = mark[1]
        elif item and spaces == old:
            widths.append(len(item[1]))
    return "\n".join(lines)
