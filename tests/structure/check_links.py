#!/usr/bin/env python3
"""Every relative link in our Markdown leads to a file, and to a heading where it names one: check_links.py ROOT."""
import re
import sys
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"!?\[[^\]]*\]\(\s*<?([^)\s>]+)>?[^)]*\)|^\s*\[[^\]]+\]:\s*(\S+)", re.MULTILINE)
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.MULTILINE)
ELSEWHERE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|//)", re.IGNORECASE)
NOT_OURS = {"build", ".git", ".venv", ".deps", "node_modules"}


def without_code(text):
    return CODE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def anchors(path):
    """The names that code hosts give to headings; a repeated heading gets -1, -2 ..."""
    names, seen = set(), {}
    text = re.sub(r"^(```|~~~).*?^\1", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in HEADING.findall(text):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(f"{name}-{count}" if count else name)
    return names


def check_link(root, page, link):
    """Why a link leads nowhere; None if it is fine."""
    if ELSEWHERE.match(link):
        return None
    target, _, anchor = unquote(link).partition("#")
    path = (root / target.lstrip("/") if target.startswith("/") else page.parent / target) if target else page
    if not path.exists():
        return "no such file"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return "no such heading"
    return None


def check(root):
    root, problems = Path(root), []
    for page in sorted(root.rglob("*.md")):
        if NOT_OURS & set(page.relative_to(root).parts):
            continue
        text = without_code(page.read_text(encoding="utf-8"))
        for match in LINK.finditer(text):
            link = match.group(1) or match.group(2)
            reason = check_link(root, page, link)
            if reason:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{page.relative_to(root)}:{line}: {link}: {reason}")
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1])
    print("\n".join(found) or "every link leads somewhere")
    sys.exit(1 if found else 0)
