#!/usr/bin/env python3
"""Our libraries are ours, and load late: usage check_private.py LIBRARY...

A process may hold other packages with an OpenBLAS, oneDNN or OpenMP of their own, and little static thread-local storage
that is still free. So none of those is asked for by name, none is offered to others, and no such storage is needed.
"""
import re
import subprocess
import sys
from pathlib import Path

SHARED = re.compile(r"^lib(open|c)?blas|^liblapack|^libdnnl|^libi?omp5?\.|^libgomp")
SYMBOL = re.compile(r"^(cblas_|openblas_|[sdcz]gemm_?$|dnnl_|omp_|GOMP_)")
# A fixed offset from the thread pointer. The flag alone does not tell: linkers for aarch64 leave it out.
STATIC_TLS = re.compile(r"\bR_\w+_TP(?:OFF|REL)\w*|\bSTATIC_TLS\b")
OFFERED = {"libxpuruntime_onednn.so", "libxpuruntime_openmp.so"}  # opened by path, in a scope of their own


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def check_library(library):
    dynamic = output("readelf", "-dW", library)
    problems = [f"is or needs {name}" for name in re.findall(r"\[([^\]]*)\]", dynamic) if SHARED.search(name)]
    if Path(library).name not in OFFERED:
        symbols = {line.split()[-1].split("@")[0] for line in output("nm", "-D", library).splitlines()}
        problems += [f"shares {symbol}" for symbol in sorted(symbols) if SYMBOL.search(symbol)]
    static = set(STATIC_TLS.findall(dynamic + output("readelf", "-rW", library)))
    problems += [f"needs static thread-local storage ({kind})" for kind in sorted(static)]
    return [f"{library}: {problem}" for problem in problems]


def check(libraries):
    return [problem for library in libraries for problem in check_library(library)]


if __name__ == "__main__":
    found = check(sys.argv[1:])
    print("\n".join(found) or "nothing is shared, nothing needs static thread-local storage")
    sys.exit(1 if found else 0)
