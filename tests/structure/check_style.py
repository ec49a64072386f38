#!/usr/bin/env python3
"""House style that a machine can judge: usage check_style.py ROOT, or check_style.py --format ROOT.

--format asks clang-format; exit status 77 means that the right version is not here.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

LONGEST_FILE = 600
FORMATTER_VERSION = 14  # versions disagree about details; one of them decides
SKIPPED = 77
WRITTEN = re.compile(r"tools/(op_functions|api_reference)\.py")  # by a tool, as long as the table of ops makes it
TOPS = ("include", "src", "tests", "bench", "fuzz", "tools", "cmake", "docs", "python", "examples")
SUFFIXES = {".h", ".cpp", ".cu", ".cuh", ".cl", ".py", ".sh", ".cmake", ".txt", ".md", ".yml"}
FORMATTED = {".h", ".cpp", ".cu", ".cuh"}


def our_files(root):
    found = [path for path in sorted(root.iterdir()) if path.is_file()]
    for top in TOPS:
        found += sorted((root / top).rglob("*"))
    # Corpora and test data are inputs, not text to read.
    return [path for path in found if path.suffix in SUFFIXES and not {"corpus", "data"} & set(path.parts)]


def check_file(path):
    lines = path.read_text(encoding="utf-8").split("\n")
    # Only where it indents: test data in a raw string may hold one.
    problems = [f"{path}:{number}: a tab" for number, line in enumerate(lines, 1) if re.match(r" *\t", line)]
    problems += [f"{path}:{number}: blanks at the end" for number, line in enumerate(lines, 1) if line != line.rstrip()]
    if lines[-1]:
        problems.append(f"{path}: no newline at the end")
    if len(lines) - 1 > LONGEST_FILE and not any(WRITTEN.search(line) for line in lines[:10]):
        problems.append(f"{path}: {len(lines) - 1} lines, more than {LONGEST_FILE}; split it")
    return problems


def check(root):
    return [problem for path in our_files(Path(root)) for problem in check_file(path)]


def formatter():
    """The clang-format that decides, or why there is none."""
    for name in (f"clang-format-{FORMATTER_VERSION}", "clang-format"):
        program = shutil.which(name)
        text = program and subprocess.run([program, "--version"], capture_output=True, text=True).stdout
        if text and re.search(rf"version {FORMATTER_VERSION}\.", text):
            return program, None
    return None, f"skipped: clang-format {FORMATTER_VERSION} is not installed"


def check_format(root):
    program, absent = formatter()
    if absent:
        print(absent)
        return SKIPPED
    files = [str(path) for path in our_files(Path(root)) if path.suffix in FORMATTED]
    answer = subprocess.run([program, "--dry-run", "-Werror", *files], capture_output=True, text=True)
    loose = sorted(set(re.findall(r"^(.*?):\d+:\d+: error: ", answer.stderr, re.MULTILINE)))
    print(f"run {program} -i " + " ".join(loose) if loose else answer.stderr or "all files are formatted")
    return answer.returncode


def main(arguments):
    if arguments[0] == "--format":
        return check_format(arguments[1])
    found = check(arguments[0])
    print("\n".join(found) or "nothing to mend")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
