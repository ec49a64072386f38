#!/usr/bin/env python3
"""The documentation says what the code does: check_docs.py ROOT COMPILER.

Marked examples compile, docs/seeds.md names all that the seeds name, docs/interfaces.md lists every key, field and op, and
CONTRIBUTING.md's chapter "Add an op" shows what stands in the tree.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path

SKIPPED = 77
EXAMPLE = re.compile(r"^```cpp\n(// compiles\n.*?)^```$", re.MULTILINE | re.DOTALL)
STRANGER = "tests/structure/stranger/main.cpp"

DECODER = "src/backends/cpu/decoder/kernels.h"
ELSEWHERE = "cuda|opencl|graph/native/lower_|graph/passes/|__pycache__"  # may name any op
# Every class, method, property and enum value of each seed, by the number in its heading of docs/seeds.md.
SEEDS = {
    "000": """
        KernelDtype Float32 Float16 BFloat16 Mixed Auto
        KernelSelector Device GetKernelDtype IsKernelAvailable RegisterKernelCapability SelectBestKernel
        GetPerformanceStats UpdatePerformanceStats MapDataTypeToKernelDtype
        KernelCapability Dtype IsAvailable SupportsTensorCores PerformanceFactor MemoryEfficiency
        CreateFloat32 CreateFloat16 CreateBFloat16
        KernelPerformanceStats OperationName AverageExecutionTime MinExecutionTime MaxExecutionTime ExecutionCount ToString
        KernelRegistry GetOrCreateSelector RegisterDefaultCapabilities Clear GetAllSelectors
        conv2d conv2d_fp16 conv2d_bf16 matmul matmul_fp16 matmul_bf16 relu gelu maxpool2d avgpool2d""",
    "001": """
        OpPrecision Higher Lower Keep Custom
        OpPrecisionRule OperationType ForwardPrecision BackwardPrecision CustomForwardDtype CustomBackwardDtype Priority
        GetForwardDtype GetBackwardDtype
        AmpConfig AmpRegistry RegisterWhitelist RegisterBlacklist RegisterCustomOp RegisterRule Unregister GetRule
        IsWhitelisted IsBlacklisted Clear GetAllRules
        DefaultAmpRules DefaultWhitelist DefaultBlacklist ApplyDefaultRules
        Conv2d Conv3d Linear MaxPool2d MaxPool3d AvgPool2d AvgPool3d BatchNorm1d BatchNorm2d BatchNorm3d Dropout Relu Gelu
        Sigmoid Tanh ElementwiseAdd ElementwiseMul ElementwiseSub ElementwiseDiv MatMul MatrixMultiply Softmax LogSoftmax
        Log Exp Sqrt ReduceSum ReduceMean ReduceMax ReduceMin Normalize LayerNorm Embedding CrossEntropyLoss NllLoss
        KlDivLoss PoissonNLLLoss""",
    "002": """
        KernelSelector register select _rules _builtins CONV2D_WINOGRAD CONV2D_IM2COL CONV2D_TILED_LOCAL
        CONV2D_IMPLICIT_GEMM CONV2D_NAIVE_SMALL KernelSpec DeviceProfile WorkGroupTuner Autotuner""",
    "003": """
        KernelPolicy preferences auto_strategy default_precision to_json from_json merge __init__ set get save load __repr__
        AutoSelectStrategy FirstSupported BestPerformance LowestMemory FIRST_SUPPORTED BEST_PERFORMANCE LOWEST_MEMORY
        ExecutionPolicy target precision static_shape fixed_shapes allow_fallback optimize_level cache_compiled cache_dir
        compile_timeout_ms execution_timeout_ms __post_init__ with_precision with_fallback
        Dispatcher instance dispatch select_kernel set_policy get_policy logging_enabled_
        KernelContext dtype device_id input_shapes supports execute name CublasLtKernel
        DeviceManager get_device_info compute_capability_major
        DispatchLog op_name selected_kernel input_shape elapsed_us
        KernelRegistry get_kernel_names validate_policy with_policy set_kernel_policy get_optimal_policy
        enable_dispatch_logging get_dispatch_logs clear_dispatch_logs get_available_kernels get_registered_ops
        cublas cublasLt cutlass torch flash_v2 xformers cudnn cudnn_implicit_gemm cudnn_winograd""",
    "004": """
        OpDispatcher table_ registerDevice registerAll lookup
        OpCache caches_ capacity_ destructor_ getCache setCapacity clear Destructor BaseCache CacheVector
        LRUCache get put context setDevice getDevice getDeviceCount NVIDIA KUNLUN CPU HYGON COUNT""",
}

# The rows of a table of fields (src/core/json_fields.h).
ROWS = r'(?:>\(|\{)"([a-z]\w*)"[,)]'
# What docs/interfaces.md promises to list: heading, source, and the expression that finds the names there.
LISTED = (
    ("Decision", "src/select/decision.cpp", r'\{"(\w+)",'),
    ("Bench", "src/cli/bench.cpp", r'\{"(\w+)", (?!")'),
    ("Trace", "src/dispatch/trace.cpp", r'\{"(\w+)",'),
    ("Policy file", "src/select/policy_json.cpp", ROWS),
    ("Policy file", "src/select/policy_rule_json.cpp", ROWS),
    ("Policy commands", "src/cli/policy.cpp", r'\{"(\w+)", (?!\d, |")'),
    ("Lock file", "src/select/lock_json.cpp", ROWS),
    ("Lock file", "src/cli/lock.cpp", r'\{"(\w+)",'),
    ("Report", "src/runtime/report_json.cpp", r'\{"(\w+)",'),
    ("Tune", "src/cli/tuned.cpp", r'\{"(\w+)",'),
    ("Tune", "src/cli/demo_tune.cpp", r'\{"(\w+)",'),
    ("Store", "src/tune/entry_json.cpp", ROWS),
    ("Store", "src/tune/store_exchange.cpp", ROWS),
    ("Store", "src/cli/store_list.cpp", r'\{"(\w+)",'),
    ("Store", "src/cli/store.cpp", r'(?:told\(.*?, |\{)"(\w+)", (?!")(?!list|export|import|merge|prune|check)'),
    ("Profile file", "src/device/profile.cpp", r'field<&P::(\w+)>'),
)


def pages(root):
    return [path for path in (root / "README.md", *sorted((root / "docs").glob("*.md"))) if path.exists()]


def check_examples(root, compiler):
    problems = []
    command = [compiler, "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{root / 'include'}", "-x", "c++", "-"]
    for page in pages(root):
        text = page.read_text(encoding="utf-8")
        for match in EXAMPLE.finditer(text):
            answer = subprocess.run(command, input=match.group(1), capture_output=True, text=True)
            if answer.returncode:
                line = text.count("\n", 0, match.start()) + 1
                problems.append(f"{page.relative_to(root)}:{line}: does not compile:\n{answer.stderr}")
    return problems


def check_stranger(root):
    """The README's first example is the program that the install test builds and runs."""
    found = EXAMPLE.search((root / "README.md").read_text(encoding="utf-8"))
    shown = found.group(1).split("\n", 1)[1] if found else ""
    ours = (root / STRANGER).read_text(encoding="utf-8").split("\n", 1)[1]
    return [] if shown == ours else [f"README.md: its first example is not {STRANGER}"]


def section(text, heading):
    """What stands under a heading whose first words are these, up to the next one of its rank."""
    found = re.search(rf"^(#+) {re.escape(heading)}\b.*?(?=^\1 |\Z)", text, re.MULTILINE | re.DOTALL)
    return found.group() if found else ""


def missing(names, text):
    code = " ".join(re.findall(r"`([^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))
    return [name for name in dict.fromkeys(names) if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)]


def check_seeds(text, seeds=None):
    problems = []
    for seed, names in (SEEDS if seeds is None else seeds).items():
        for name in missing(names.split(), section(text, f"Seed {seed}")):
            problems.append(f"docs/seeds.md: seed {seed}: {name} is not there")
    return problems


def names_in(source, expression):
    found = re.findall(expression, source)
    return [name for part in found for name in (re.findall(r'"(\w+)"', part) if '"' in part else [part])]


def check_interfaces(root):
    text, problems = (root / "docs/interfaces.md").read_text(encoding="utf-8"), []
    for heading, path, expression in LISTED:
        names = names_in((root / path).read_text(encoding="utf-8"), expression)
        if not names:
            problems.append(f"{path}: nothing looks like {expression}; mend check_docs.py")
        for name in missing(names, section(text, heading)):
            problems.append(f"docs/interfaces.md: {heading}: {name} of {path} is not there")
    return problems


def code_that_names(root, op):
    """Files of the library and its tests, but for CUDA's, OpenCL's, those that turn ONNX's operators or several ops into
    one of ours, and those that tools/ makes."""
    for path in sorted(path for top in ("include", "src", "tests") for path in (root / top).rglob("*") if path.is_file()):
        name, text = str(path.relative_to(root)), path.read_text(encoding="utf-8", errors="ignore")
        named = re.search(rf"(?<![a-zA-Z]){op}(?![a-zA-Z])", text)
        if named and not re.search(ELSEWHERE, name) and "// Made by tools/" not in text:
            yield name


def check_op_chapter(root):
    """The files that name the op, which the chapter names first, are those it lists, at most six, and tests that nothing
    depends on; each block stands in the last file named."""
    chapter = section((root / "CONTRIBUTING.md").read_text(encoding="utf-8"), "Add an op")
    op, path = re.search(r"`(\w+)`|$", chapter).group(1) or "no op", None
    listed = set(re.findall(r"`((?:include|src|tests)/[^`]+)`", chapter))
    files = {name: (root / name).read_text(encoding="utf-8") for name in code_that_names(root, op)}
    problems = [f"{name} is not there or does not name {op}" for name in sorted(listed - files.keys())]
    problems += [f"{name} names {op} too" for name in sorted(files.keys() - listed) if "_test." not in name]
    if not 1 <= len(listed) <= 6:
        problems.append(f"it names {len(listed)} files; an op takes at most six")
    for name, block in re.findall(r"`((?:include|src|tests)/[^`]+)`|^```\w+\n(.*?)^```$", chapter, re.MULTILINE | re.DOTALL):
        path = name or path
        if block and block not in files.get(path, ""):
            problems.append(f"this is not in {path}:\n{block}")
    return [f"CONTRIBUTING.md: Add an op: {problem}" for problem in problems]


def check_op_places(root):
    """The ops beside the one of the chapter take no more files than it: four, and two tests."""
    problems = []
    for op in sorted(set(re.findall(r"OpId::(\w+)", (root / DECODER).read_text(encoding="utf-8")))):
        code = [name for name in code_that_names(root, op) if "_test." not in name]
        if len(code) > 4:
            problems.append(f"{op} is in more than four files: {', '.join(code)}")
    return problems


def main(root, compiler):
    root = Path(root)
    if shutil.which(compiler) is None:
        print(f"skipped: {compiler} is not here")
        return SKIPPED
    seeds = (root / "docs/seeds.md").read_text(encoding="utf-8")
    found = check_examples(root, compiler) + check_stranger(root) + check_seeds(seeds) + check_interfaces(root)
    found += check_op_chapter(root) + check_op_places(root)
    print("\n".join(found) or "the documentation keeps its word")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
