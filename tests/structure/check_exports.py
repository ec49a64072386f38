#!/usr/bin/env python3
"""Only names of the public headers leave the library: usage check_exports.py ROOT LIBRARY [MODULE...].

Reads the table of symbols. Every one in XPURUNTIME_0 is made of words that stand in include/, and every function that a
header there declares is one of them. XPURUNTIME_PRIVATE_0, for our own programs and backends, is small, and is made of words of
headers too. Nothing has another version or none. A module, which is a plugin, has the one name that a plugin must have.
"""
import re
import subprocess
import sys
from pathlib import Path

PUBLIC, PRIVATE = "XPURUNTIME_0", "XPURUNTIME_PRIVATE_0"
MOST_PRIVATE = 192
SYMBOL = re.compile(r"^ *\d+: \w+ +\w+ +(\w+) +(?:GLOBAL|WEAK|UNIQUE) +DEFAULT +(?!UND)\w+ +(.+)$", re.MULTILINE)
STRONG = re.compile(r"^ *\d+: \w+ +\w+ +\w+ +GLOBAL +DEFAULT +(?!UND)\w+ +(.+)$", re.MULTILINE)
# At the start of a line, as clang-format puts what stands in a namespace; with a body it may be inline everywhere.
OTHERS = r"(?:inline|constexpr|using|struct|class|enum|namespace|static)\b"
FUNCTION = re.compile(rf"^(?!{OTHERS})[\w\[][^\n(;={{]*?\b(\w+)\(", re.MULTILINE)
NO_FUNCTION = re.compile(r"//[^\n]*|^#(?:\\\n|[^\n])*|^template[^\n]*\n[^\n]*", re.MULTILINE)
PARAMETERS = re.compile(r"\((?!anonymous).*$")


def table_of(library):
    return subprocess.run(["readelf", "--dyn-syms", "-W", library], check=True, capture_output=True, text=True).stdout


def check_module(module):
    return [f"{module}: {name} is exported" for name in STRONG.findall(table_of(module)) if name != "xpuruntime_plugin"]


def exported(library):
    """Each name that is defined for others, as C++ writes it, with its version."""
    symbols = [symbol for kind, symbol in SYMBOL.findall(table_of(library)) if kind != "NOTYPE"]
    plain = subprocess.run(["c++filt"], input="\n".join(re.sub("@.*", "", symbol) for symbol in symbols), check=True,
                           capture_output=True, text=True).stdout.split("\n")
    return [(name, symbol.partition("@")[2].strip("@").split(" ")[0]) for name, symbol in zip(plain, symbols)
            if name not in (PUBLIC, PRIVATE)]


def entity(name):
    """The name without what it is made for and without parameters."""
    return PARAMETERS.sub("", re.sub(r"\[abi:\w+\]|^.* (?:for|to) ", "", name))


def words_of(folder):
    return set(re.findall(r"\w+", "\n".join(path.read_text(encoding="utf-8") for path in folder.rglob("*.h"))))


def check(root, library):
    root = Path(root)
    names = exported(library)
    known = {PUBLIC: words_of(root / "include"), PRIVATE: words_of(root / "src") | words_of(root / "include")}
    problems = [f"{name} has the version '{version}'" for name, version in names if version not in known]
    for name, version in names:
        own = entity(name)
        strange = [word for word in re.findall(r"\w+", own) if word not in known.get(version, [word]) and word != "operator"]
        if strange or not own.startswith("xpuruntime::") or "<" in own.replace("operator<", ""):
            problems.append(f"{name} is no name of a header")
    count = sum(version == PRIVATE for _, version in names)
    if count > MOST_PRIVATE:
        problems.append(f"{count} private names, more than {MOST_PRIVATE}; use public ones")
    public = {entity(name).split("::")[-1] for name, version in names if version == PUBLIC}
    for path in sorted((root / "include").rglob("*.h")):
        code = NO_FUNCTION.sub("", path.read_text(encoding="utf-8"))
        problems += [f"{path}: {name} is not exported" for name in FUNCTION.findall(code) if name not in public]
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1], sys.argv[2]) + [problem for module in sys.argv[3:] for problem in check_module(module)]
    print("\n".join(found) or "only names of the headers are exported")
    sys.exit(1 if found else 0)
