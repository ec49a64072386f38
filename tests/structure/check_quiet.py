#!/usr/bin/env python3
"""The library never prints, aborts or exits, and reads variables by environment_variable alone: usage
check_quiet.py ROOT FILE...

Looks twice: at what the built files import, and at what our sources say. The files are shared libraries, or the objects of
one that also holds archives of others: OpenBLAS prints and exits where it finds no memory.
"""
import re
import subprocess
import sys
from pathlib import Path

PRINTS = "printf fprintf vprintf vfprintf dprintf vdprintf puts fputs fputc putc putchar putchar_unlocked perror psignal"
PRINTS += " syslog wprintf fwprintf __printf_chk __fprintf_chk __vprintf_chk __vfprintf_chk __dprintf_chk stdout stderr"
STREAMS = "_ZSt4cout _ZSt4cerr _ZSt4clog _ZSt5wcout _ZSt5wcerr _ZSt5wclog"
INCLUDES_IOSTREAM = "_ZNSt8ios_base4InitC1Ev"
ENDS = "abort exit _exit _Exit quick_exit at_quick_exit raise kill"
FORBIDDEN = set(f"{PRINTS} {STREAMS} {INCLUDES_IOSTREAM} {ENDS}".split())

# Imports that look bad and are not, so they are absent from FORBIDDEN:
#   __assert_fail      the assertions of the JSON library, in builds without NDEBUG only; the source check below keeps
#                      assert out of our own files
#   _ZSt9terminatev    what the compiler puts where an exception would leave a noexcept function
#   snprintf, fwrite   format into memory and write files; neither reaches the terminal without stdout or stderr
# The static CUDA runtime brings `kill` along, and nvcc gives device functions a host body that calls `exit`; nothing of
# ours calls either (the sources are searched too). CUTLASS names std::cerr where a descriptor cannot be made; `cutlass`
# refuses what would lead there.
# A kernel that may crash is tried in a child process, which ends with _exit and is killed if it hangs.
CUTLASS = {"_ZSt4cerr", INCLUDES_IOSTREAM}
# A worker that does not answer is killed too; its program may end as it likes.
ALLOWED_PER_BINARY = {"xpuruntime_cuda": {"exit", "kill"} | CUTLASS, "xpuruntime_opencl": {"kill"},
                      "probe": {"_exit", "kill"}, "helper_process": {"kill"},
                      "run_child": {"kill"}}
# Some compilers link the C++ runtime statically; its terminate handler comes along.
STATIC_RUNTIME = {"abort", "fputc", "fputs", "stderr"}
ALLOWED_PER_FILE = {"src/tune/probe.cpp": {"_exit"}, "src/backends/opencl/worker_main.cpp": {"_exit"},
                    "src/graph/openvino/worker/worker_main.cpp": {"_exit"}}

SPEECH = re.compile(
    r"(?<![\w.>])(?:std::)?(?:abort|exit|_exit|_Exit|quick_exit|terminate|v?f?printf|puts|perror|assert|getenv)\s*\("
    r"|\bstd::(?:cout|cerr|clog)\b|#\s*include\s*<(?:iostream|cassert|assert\.h)>"
)
COMMENT_OR_STRING = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
DEVICE_CODE = {".cu", ".cuh", ".cl"}  # built by other compilers; their host parts are seen in the library


def imports(binaries):
    """Pairs of a file and a name."""
    objects = [file for file in binaries if file.endswith(".o")]
    for option, files in (("-A", objects), ("-AD", [file for file in binaries if file not in objects])):
        if files:
            text = subprocess.run(["nm", option, "--undefined-only", *files], check=True, capture_output=True, text=True).stdout
            for line in text.splitlines():  # "libx.so:                 U printf@GLIBC_2.2.5"
                file, _, rest = line.rpartition(":")
                yield file, rest.split()[-1].split("@")[0]


def has_static_runtime(library):
    names = subprocess.run(["nm", "--defined-only", library], check=True, capture_output=True, text=True)
    return "__verbose_terminate_handler" in names.stdout


def check_binaries(binaries):
    static = {file for file in binaries if not file.endswith(".o") and has_static_runtime(file)}

    def allowed(file):
        names = ALLOWED_PER_BINARY.get(Path(file).name.split(".")[0].removeprefix("lib"), set())
        return names | STATIC_RUNTIME if file in static else names

    return [f"{file}: imports {name}" for file, name in sorted(imports(binaries)) if name in FORBIDDEN - allowed(file)]


def blank(match):
    """Keeps the lines, so that numbers stay right."""
    return re.sub(r"[^\n]", " ", match.group())


def check_source(path, allowed=frozenset()):
    code = COMMENT_OR_STRING.sub(blank, path.read_text(encoding="utf-8"))
    return [f"{path}:{number}: says {match.group()}" for number, line in enumerate(code.splitlines(), 1)
            for match in SPEECH.finditer(line) if match.group().rstrip("( \t") not in allowed]


def library_sources(root):
    for top in ("include", "src"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in {".h", ".cpp"} and not path.is_relative_to(root / "src/cli"):
                yield path


def check(root, binaries):
    problems = check_binaries(binaries)
    for path in library_sources(Path(root)):
        problems += check_source(path, ALLOWED_PER_FILE.get(str(path.relative_to(root)), frozenset()))
    return problems


if __name__ == "__main__":
    found = check(sys.argv[1], sys.argv[2:])
    print("\n".join(found) or "no way to print, abort or exit")
    sys.exit(1 if found else 0)
