"""Corrects the search of Chinese words.

The search splits the words of a query at the words of the pages. Two errors in the script of the theme:

* The script leaves out the last character of a query: of 缓存穿透 the script finds 缓存 alone, and of 误判率 only 误判.
* The script appends two wildcards to each part, and then takes the part for a word that the page does not have.
"""

from pathlib import Path

#: Parts of the script of the pinned version of the theme, and their corrections.
CORRECTIONS = {
    "for(let o=s+1;o<t.length;o++)t.slice(s,o)in e": "for(let o=s+1;o<=t.length;o++)t.slice(s,o)in e",
    'join("* ")': 'join(" ")',
}


def on_post_build(config):
    """Corrects the script of the search."""
    [script] = Path(config.site_dir).glob("assets/javascripts/workers/search.*.min.js")
    text = script.read_text("utf-8")
    for wrong, right in CORRECTIONS.items():
        if text.count(wrong) != 1:
            raise RuntimeError(f"{script.name} does not contain {wrong}: see whether the new theme needs this hook")
        text = text.replace(wrong, right)
    script.write_text(text, "utf-8")
