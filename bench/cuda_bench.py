#!/usr/bin/env python3
"""Times our kernels on a GPU against PyTorch in the same process: usage cuda_bench.py [linear] [ops] [layer] [host].

Device time by events, median. Before each call 256 MB of other memory are read, so that the L2 cache holds nothing of
the operands and nothing to write back, and the host's launches are hidden behind that. All contenders take turns, in
another order each time: code that ran just before is still cached. `warm` repeats our choice without the read. PyTorch's
linear is the faster of its two libraries, cuBLAS and cuBLASLt, raced once more against our choice alone.
"""
import argparse
import json
import math
import random
import re
import statistics
import sys
import time

try:
    import torch
    from torch.nn import functional
    import xpuruntime as xrt
except ImportError as error:
    print(f"cuda_bench: {error}: nothing to time", file=sys.stderr)
    sys.exit(0)

DTYPES = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64, "i32": torch.int32}

# n x k of weights under 16 MiB or with an extent that 8 does not divide, of 32 to 256 MB, and m x n x k of the rest.
SMALL = [(1000, 2048), (2048, 2048), (64, 4096), (1023, 4097), (777, 555), (512, 512), (1280, 5120), (3072, 1024), (250, 4096)]
WEIGHTS = [(4096, 4096), (6144, 4096), (4096, 14336), (28672, 4096), (11008, 4096), (8192, 8192)]
LARGE = [(256, 4096, 4096), (333, 777, 555), (128, 128, 65536), (512, 6144, 4096), (1024, 1024, 1024), (2048, 4096, 14336),
         (4096, 4096, 4096), (4096, 28672, 4096)]

# What memory bounds. Of a table, a slice and a cache only what is taken or written counts as traffic.
OPS = """
copy(f32[67108864])
copy(f32[268435456])
reduce_sum(f32[268435456])
rms_norm(bf16[1,4096], bf16[4096])
rms_norm(bf16[64,4096], bf16[4096])
rms_norm(bf16[8192,4096], bf16[4096])
rms_norm(bf16[16384,8192], bf16[8192])
add_rms_norm(bf16[1,4096], bf16[1,4096], bf16[4096])
add_rms_norm(bf16[64,4096], bf16[64,4096], bf16[4096])
add_rms_norm(bf16[8192,4096], bf16[8192,4096], bf16[4096])
layer_norm(bf16[65536,1024], bf16[1024], bf16[1024])
layer_norm(bf16[16384,5120], bf16[5120], bf16[5120])
layer_norm(f32[8192,8192], f32[8192], f32[8192])
normalize(bf16[65536,1024])
softmax(bf16[1048576,64])
softmax(bf16[131072,1024])
softmax(bf16[4096,32000])
softmax(f32[4096,32000])
softmax(bf16[4096,50257])
softmax(bf16[1,151936])
log_softmax(bf16[4096,32000])
cross_entropy(bf16[2048,151936], i64[2048])
cross_entropy(f32[2048,151936], i64[2048])
cross_entropy(bf16[8192,50257], i64[8192])
cross_entropy(bf16[131072,1000], i64[131072])
kl_div(bf16[16384,8192], bf16[16384,8192]; log_target=true)
kl_div(f32[8192,8192], f32[8192,8192]; log_target=true reduction=none)
poisson_nll_loss(f32[8192,8192], f32[8192,8192])
add(bf16[16384,8192], bf16[16384,8192])
add(bf16[16384,8192], bf16[8192])
mul(f32[8192,8192], f32[8192,1])
relu(bf16[16384,8192])
gelu(bf16[16384,8192])
gelu(bf16[16384,8192]; approximate=tanh)
silu(bf16[16384,8192])
silu(bf16[64,11008])
silu_mul(bf16[1,28672])
silu_mul(bf16[64,28672])
silu_mul(bf16[8192,28672])
rope(bf16[64,32,128], i64[64], f32[8192,64], f32[8192,64])
rope(bf16[8192,32,128], i64[8192], f32[8192,64], f32[8192,64])
rope(bf16[8192,32,128], i64[8192], f32[8192,64], f32[8192,64]; interleaved=true)
kv_append(bf16[64,8,4096,128], bf16[64,8,4096,128], bf16[64,8,1,128], bf16[64,8,1,128], i64[64])
kv_append(bf16[8,8,8192,128], bf16[8,8,8192,128], bf16[8,8,4096,128], bf16[8,8,4096,128], i64[8])
kv_append(bf16[16384,16,8,128], bf16[16384,16,8,128], bf16[64,8,1,128], bf16[64,8,1,128], i64[64], i32[64,256])
kv_append(bf16[16384,16,8,128], bf16[16384,16,8,128], bf16[8,8,4096,128], bf16[8,8,4096,128], i64[8], i32[8,512])
exp(f32[8192,8192])
dropout(bf16[16384,8192]; seed=7)
dropout(f32[8192,8192]; seed=7)
unscale(f32[67108864], f32[1])
cast(f32[67108864]; dtype=bf16)
cast(bf16[134217728]; dtype=f32)
transpose(bf16[16384,8192])
transpose(f32[8192,8192])
transpose(bf16[8,4096,32,128]; dims=0,2,1,3)
concat(bf16[16384,4096], bf16[16384,4096]; dim=1)
slice(bf16[16384,12288]; dim=1 start=4096)
embedding(i64[16384], bf16[128256,4096])
embedding(i64[64], bf16[128256,4096])
reduce_sum(bf16[16384,8192]; dim=1)
reduce_sum(bf16[16384,8192]; dim=0)
reduce_max(bf16[64,4096,512]; dim=1)
""".strip().splitlines()
COMPILED = {"rms_norm", "add_rms_norm", "layer_norm", "softmax", "log_softmax", "cross_entropy", "silu_mul", "rope", "normalize",
            "kl_div"}


class Clock:
    """Median microseconds of device time of each of several calls that take turns."""

    def __init__(self, repeats):
        self.repeats = repeats
        self.source = torch.rand(64 << 20, device="cuda")
        self.orders = random.Random(1)

    def race(self, calls, cold=True):
        for call in calls.values():
            for _ in range(3):
                call()
        events = {name: [] for name in calls}
        order = list(calls.items())
        for _ in range(self.repeats):
            self.orders.shuffle(order)
            for name, call in order:
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                if cold:
                    self.source.sum()
                begin.record()
                call()
                end.record()
                events[name].append((begin, end))
        torch.cuda.synchronize()
        return {name: statistics.median(a.elapsed_time(b) * 1000 for a, b in pairs) for name, pairs in events.items()}


def table(rows, left=1):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        print("  ".join(c.ljust(w) if i < left else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths))).rstrip())


def mean(ratios):
    return math.exp(statistics.fmean(math.log(ratio) for ratio in ratios))


def uniform(shape, dtype):
    return torch.empty(shape, device="cuda", dtype=dtype).uniform_(-1, 1)


def forced(op, kernel, call):
    """The call by this kernel, or nothing where it refuses."""
    policy = xrt.KernelPolicy(**{op: {"kernel": kernel, "mode": "force"}})

    def run():
        with xrt.with_policy(policy):
            return call()
    try:
        run()
    except xrt.XpuRuntimeError:
        return None
    return run


def by_library(name, call):
    def run():
        torch.backends.cuda.preferred_blas_library(name)
        return call()
    return run


def fresh_rows(count, seed):
    """Rows of the same groups that nobody has looked at before."""
    rng = random.Random(seed)
    for _ in range(count):
        odd, (n, k) = rng.random() < 0.5, (rng.randrange(64, 2700) for _ in range(2))
        n, k = (n | 1, k) if odd else (n // 8 * 8, k // 8 * 8)
        yield "small", rng.randrange(1, 65), n, k, rng.choice(["nt", "nn"]), rng.choice(["bf16", "f16"])
        n, k = 8 * rng.randrange(512, 2048), 8 * rng.randrange(512, 1024)
        yield "weights", rng.randrange(1, 65), n, k, rng.choice(["nt", "nn"]), rng.choice(["bf16", "f16"])


def linear_rows(fresh, seed):
    for n, k in SMALL:
        yield from (("small", m, n, k, "nt", "bf16") for m in (1, 4, 16, 64))
        yield from (("small", m, n, k, "nn", "f16") for m in (2, 32))
    for n, k in WEIGHTS:
        yield from (("weights", m, n, k, "nt", "bf16") for m in (1, 4, 16, 64))
        yield "weights", 8, n, k, "nn", "f16"
    yield from (("large", m, n, k, "nt", "bf16") for m, n, k in LARGE)
    yield from fresh_rows(fresh, seed)


def time_linear(clock, arguments):
    seed = random.randrange(1 << 30) if arguments.seed is None else arguments.seed
    results = []
    library = torch.backends.cuda.preferred_blas_library()
    nothing = clock.race({"nothing": lambda: torch.cuda._sleep(0)})["nothing"]
    for group, m, n, k, layout, dtype in linear_rows(arguments.fresh, seed):
        x = uniform((m, k), DTYPES[dtype])
        weight = uniform((n, k) if layout == "nt" else (k, n), DTYPES[dtype])
        out = torch.empty((m, n), device="cuda", dtype=DTYPES[dtype])
        if layout == "nt":
            op, ours, peer = "linear", lambda: xrt.ops.linear(x, weight, out=out), lambda: functional.linear(x, weight)
        else:
            op, ours, peer = "matmul", lambda: xrt.ops.matmul(x, weight, out=out), lambda: x @ weight
        calls = {"ours": ours}
        calls |= {kernel: call for kernel in arguments.kernels if (call := forced(op, kernel, ours))}
        calls |= {f"torch {name}": by_library(name, peer) for name in ("cublas", "cublaslt")}
        problem = f"{op}({dtype}[{m},{k}], {dtype}[{','.join(map(str, weight.shape))}]) @cuda:0"
        row = {"group": group, "problem": problem, "times": clock.race(calls)}
        row["warm"] = clock.race({"ours": ours}, cold=False)["ours"]
        best = min((name for name in calls if name.startswith("torch")), key=row["times"].get)
        final = clock.race({"ours": ours, "torch": calls[best]})
        row["ratio"] = final["torch"] / final["ours"]
        row["choice"] = xrt.explain(problem).kernel
        row["floor"] = max(2 * (m * k + n * k + m * n) / 4.3e6, 2 * m * n * k / 790e6)
        results.append(row)
    torch.backends.cuda.preferred_blas_library(library)
    show_linear(results, arguments.kernels, nothing)
    print(f"fresh rows: {arguments.fresh}, seed {seed}")
    return results


def show_linear(results, kernels, nothing):
    lines = [["problem", "choice", "ours", *kernels, "cublas", "cublaslt", "floor", "warm", "torch/ours"]]
    for row in results:
        times = row["times"]
        cells = [f"{times[name]:.1f}" if name in times else "-"
                 for name in ("ours", *kernels, "torch cublas", "torch cublaslt")]
        lines.append([row["problem"], row["choice"], *cells, f"{row['floor']:.1f}", f"{row['warm']:.1f}", f"{row['ratio']:.2f}x"])
    table(lines, left=2)
    for group in dict.fromkeys(row["group"] for row in results):
        rows = [row for row in results if row["group"] == group]
        own = [min(row["times"][k] for k in ("ours", *kernels) if k in row["times"]) / row["times"]["ours"] for row in rows]
        print(f"{group}: {len(rows)} rows, geometric mean {mean([r['ratio'] for r in rows]):.2f}x, "
              f"least {min(r['ratio'] for r in rows):.2f}x; within 5 % of our best kernel: {sum(o >= 0.95 for o in own)}")
        bound = mean([r["ratio"] * r["times"]["ours"] / (nothing + r["floor"]) for r in rows])
        print(f"  a kernel that does nothing takes {nothing:.1f} us; with the floor after it the mean would be {bound:.2f}x")


def parse(problem):
    """The op, its tensors and its attributes of a problem text without strides."""
    op, inside = re.fullmatch(r"(\w+)\((.*)\)", problem).groups()
    tensors, _, attributes = inside.partition(";")
    shapes = [(dtype, [int(n) for n in dims.split(",") if n]) for dtype, dims in re.findall(r"(\w+)\[([\d,]*)\]", tensors)]
    return op, shapes, dict(item.split("=") for item in attributes.split())


def add_rms_norm(x, residual, weight):
    """As Hugging Face's Llama has it, as are silu_mul and rope."""
    residual = x + residual
    wide = residual.float()
    wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
    return weight * wide.to(x.dtype), residual


def silu_mul(x):
    gate, up = x.chunk(2, -1)
    return functional.silu(gate) * up


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def rotate_pairs(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def rope_peer(x, positions, cos, sin, interleaved):
    """A model looks the angles up once for all layers, so that is not timed."""
    tables = (cos, sin) if interleaved else (torch.cat((t, t), -1) for t in (cos, sin))
    cos, sin = (t[positions][:, None].to(x.dtype) for t in tables)
    return (rotate_pairs if interleaved else rotate), (x, cos, sin)


def append(key_cache, value_cache, key, value, lengths, pages=None):
    """In place, by assignment to an indexed cache."""
    at = lengths[:, None] + torch.arange(key.shape[2], device="cuda")
    sequences = torch.arange(key.shape[0], device="cuda")[:, None]
    for cache, new in ((key_cache, key), (value_cache, value)):
        if pages is None:
            cache[sequences, :, at] = new.transpose(1, 2)
        else:
            size = cache.shape[1]
            cache[pages[sequences, at // size].long(), at % size] = new.transpose(1, 2)


def unscale(x, inverse):
    """As PyTorch's GradScaler does it, in place."""
    found = torch.zeros(1, device="cuda")
    torch._amp_foreach_non_finite_check_and_unscale_([x], found, inverse)
    return x, found


def limit_of(op, shapes):
    if op == "embedding":
        return shapes[1][1][0]
    if op == "rope":
        return shapes[2][1][0]
    if op == "kv_append":  # lengths, and pages where there are some
        cache, added = shapes[0][1], shapes[2][1]
        return min(cache[0], cache[1] * shapes[5][1][1] - added[2] + 1) if len(shapes) > 5 else cache[2] - added[2] + 1
    return shapes[0][1][-1]


def peer_of(op, x, rest, attributes):
    """PyTorch's function and its arguments."""
    if op == "rope":
        return rope_peer(x, *rest, "interleaved" in attributes)
    dim = int(attributes.get("dim", -1))
    dims = [int(d) for d in attributes.get("dims", "").split(",") if d]
    functions = {
        "copy": lambda x: x.clone(),
        "cast": lambda x: x.to(DTYPES[attributes["dtype"]]),
        "rms_norm": lambda x, w: functional.rms_norm(x, x.shape[-1:], w, eps=1e-6),
        "add_rms_norm": add_rms_norm,
        "silu_mul": silu_mul,
        "kv_append": append,
        "layer_norm": lambda x, w, b: functional.layer_norm(x, x.shape[-1:], w, b),
        "softmax": lambda x: torch.softmax(x, dim),
        "log_softmax": lambda x: torch.log_softmax(x, dim),
        "cross_entropy": functional.cross_entropy,
        "normalize": functional.normalize,
        "kl_div": lambda x, t: functional.kl_div(x, t, reduction=attributes.get("reduction", "mean"), log_target=True),
        "poisson_nll_loss": functional.poisson_nll_loss,
        "dropout": functional.dropout,
        "unscale": unscale,
        "gelu": lambda x: functional.gelu(x, approximate=attributes.get("approximate", "none")),
        "silu": functional.silu,
        "transpose": lambda x: (x.permute(dims) if dims else x.t()).contiguous(),
        "concat": lambda *all: torch.cat(all, dim),
        "slice": lambda x: x[:, int(attributes.get("start", 0)):].contiguous(),
        "embedding": functional.embedding,
        "reduce_sum": lambda x: x.sum(dim) if "dim" in attributes else x.sum(),
        "reduce_max": lambda x: x.amax(dim),
    }
    return functions.get(op) or getattr(torch, op), (x, *rest)


def megabytes_of(op, tensors, results):
    new = tensors[2:4] if op == "kv_append" else results
    parts = {"kv_append": tensors[2:], "slice": results, "embedding": (tensors[0], *results)}
    read = parts.get(op, tensors)
    return sum(t.numel() * t.element_size() for t in (*new, *read)) / 1e6


def value_of(text):
    if text in ("true", "false"):
        return text == "true"
    numbers = [int(part) for part in text.split(",")] if re.fullmatch(r"[-\d,]+", text) else None
    return text if numbers is None else numbers if len(numbers) > 1 else numbers[0]


def ours_of(op, x, rest, attributes):
    """Our function into outputs that are there; caches are written in place."""
    keywords = {name: value_of(text) for name, text in attributes.items()}
    arguments = ([x, *rest],) if op == "concat" else (x, *rest)
    if op in ("rms_norm", "layer_norm"):
        arguments = (x, x.shape[-1:], *rest)
    if op == "transpose":  # of the two dims that change places
        dims = keywords.pop("dims", [1, 0])
        arguments = (x, *(dim for dim, at in enumerate(dims) if dim != at))
    function = getattr(xrt.ops, op)
    out = (x, rest[0]) if op == "kv_append" else function(*arguments, **keywords)
    return (lambda: function(*arguments, **keywords, out=out)), out if isinstance(out, tuple) else (out,)


def time_ops(clock, arguments):
    results = []
    for problem in OPS:
        op, shapes, attributes = parse(problem)
        limit = limit_of(op, shapes)
        x, *rest = [uniform(shape, DTYPES[dtype]) if dtype[0] != "i" else
                    torch.randint(limit, shape, device="cuda", dtype=DTYPES[dtype]) for dtype, shape in shapes]
        ours, out = ours_of(op, x, rest, attributes)
        function, given = peer_of(op, x, rest, attributes)
        calls = {"ours": ours, "eager": lambda: function(*given)}
        if arguments.compile and op in COMPILED:
            torch._dynamo.reset()
            compiled = torch.compile(function, dynamic=False)
            calls["compiled"] = lambda: compiled(*given)
        times = clock.race(calls)
        results.append({"problem": problem, "times": times, "megabytes": megabytes_of(op, (x, *rest), out)})
        del x, rest, ours, out, function, given, calls
        torch.cuda.empty_cache()
    rates = {row["problem"]: row["megabytes"] / row["times"]["ours"] for row in results}
    lines = [["problem", "us", "TB/s", "share", "eager", "compiled", "eager/ours", "compiled/ours"]]
    for row in results:
        times = row["times"]
        cells = [f"{times['ours']:.1f}", f"{rates[row['problem']]:.2f}", f"{100 * rates[row['problem']] / rates[OPS[1]]:.0f}%"]
        cells += [f"{times[name]:.1f}" if name in times else "-" for name in ("eager", "compiled")]
        cells += [f"{times[name] / times['ours']:.2f}x" if name in times else "-" for name in ("eager", "compiled")]
        lines.append([row["problem"], *cells])
    table(lines)
    return results


class Layer:
    """One decoder layer of Llama 8B for one token a sequence, the cache in place; attention by PyTorch on both sides."""
    heads, groups, size, width, inner = 32, 8, 128, 4096, 14336

    def __init__(self, batch, length):
        h, g, d, w = self.heads, self.groups, self.size, self.width
        make = lambda *shape: uniform(shape, torch.bfloat16) * 0.05
        self.qkv, self.output = make((h + 2 * g) * d, w), make(w, h * d)
        self.up, self.down = make(2 * self.inner, w), make(w, self.inner)
        self.norms = [make(w) + 1 for _ in range(2)]
        self.x, self.residual = make(batch, w), make(batch, w)
        self.keys, self.values = make(batch, g, length, d), make(batch, g, length, d)
        self.lengths = torch.full((batch,), length - 1, device="cuda")
        self.cos, self.sin = torch.rand(2, length, d // 2, device="cuda")

    def heads_of(self, qkv):
        batch, h, g, d = qkv.shape[0], self.heads, self.groups, self.size
        return (part.view(batch, -1, d) for part in qkv.split([h * d, g * d, g * d], -1))

    def attend(self, q):
        q = q.unsqueeze(2)
        return functional.scaled_dot_product_attention(q, self.keys, self.values, enable_gqa=True).flatten(1)

    def peer(self):
        x, residual = add_rms_norm(self.x, self.residual, self.norms[0])
        q, k, v = self.heads_of(functional.linear(x, self.qkv))
        cos, sin = (torch.cat((t, t), -1)[self.lengths][:, None].bfloat16() for t in (self.cos, self.sin))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        append(self.keys, self.values, k.unsqueeze(2), v.unsqueeze(2), self.lengths)
        x = functional.linear(self.attend(q), self.output)
        x, residual = add_rms_norm(x, residual, self.norms[1])
        return functional.linear(silu_mul(functional.linear(x, self.up)), self.down), residual

    def ours(self):
        ops = xrt.ops
        x, residual = ops.add_rms_norm(self.x, self.residual, self.norms[0])
        q, k, v = self.heads_of(ops.linear(x, self.qkv))
        q, k = (ops.rope(part, self.lengths, self.cos, self.sin) for part in (q, k))
        ops.kv_append(self.keys, self.values, k.unsqueeze(2), v.unsqueeze(2), self.lengths, out=(self.keys, self.values))
        x = ops.linear(self.attend(q), self.output)
        x, residual = ops.add_rms_norm(x, residual, self.norms[1])
        return ops.linear(ops.silu_mul(ops.linear(x, self.up)), self.down), residual


def recorded(call):
    """The call in a CUDA graph, run before on the stream that records it."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
        stream.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            result = call()
    return graph, result


def time_layer(clock, arguments):
    lines = [["layer", "ours", "eager", "compiled", "eager/ours", "compiled/ours", "error"]]
    results = []
    for length in (1024, 8192):
        for batch in (1, 8, 32):
            layer = Layer(batch, length)
            sides = {"ours": recorded(layer.ours), "eager": recorded(layer.peer)}
            if arguments.compile:
                torch._dynamo.reset()
                sides["compiled"] = recorded(torch.compile(layer.peer, dynamic=False))
            times = clock.race({name: graph.replay for name, (graph, _) in sides.items()})
            got, wanted = (sides[name][1][0].float() for name in ("ours", "eager"))
            error = ((got - wanted).norm() / wanted.norm()).item()
            results.append({"batch": batch, "length": length, "times": times, "error": error})
            cells = [f"{times[name]:.1f}" if name in times else "-" for name in ("ours", "eager", "compiled")]
            cells += [f"{times[name] / times['ours']:.2f}x" if name in times else "-" for name in ("eager", "compiled")]
            lines.append([f"batch {batch}, kv {length}", *cells, f"{error:.1e}"])
            del layer, sides
            torch.cuda.empty_cache()
    table(lines)
    return results


def time_host(clock, arguments):
    """Nanoseconds of the host for one call from Python, the least of several batches."""
    x, weight = uniform((1, 64), torch.bfloat16), uniform((64, 64), torch.bfloat16)
    out = torch.empty(1, 64, device="cuda", dtype=torch.bfloat16)
    calls = {"ours": lambda: xrt.ops.linear(x, weight, out=out), "torch": lambda: torch.mm(x, weight, out=out)}
    best = dict.fromkeys(calls, math.inf)
    for _ in range(20):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter_ns()
            for _ in range(200):
                call()
            best[name] = min(best[name], (time.perf_counter_ns() - start) / 200)
    torch.cuda.synchronize()
    for name, cost in best.items():
        print(f"host, one linear of 64x64 from Python, {name}: {cost:.0f} ns")
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = {"linear": time_linear, "ops": time_ops, "layer": time_layer, "host": time_host}
    parser.add_argument("tables", nargs="*", default=["linear"], help="linear, ops, layer, host")
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--fresh", type=int, default=0, help="so many further rows of each group of linear, at random")
    parser.add_argument("--seed", type=int, help="of the fresh rows; printed where it is not given")
    parser.add_argument("--kernels", nargs="*", default=["skinny", "cublasLt", "cublas"],
                        help="kernels of linear to time beside our choice")
    parser.add_argument("--compile", action="store_true", help="torch.compile beside eager, which takes seconds a row")
    parser.add_argument("--json", help="writes the figures to this file too")
    arguments = parser.parse_args()
    if unknown := set(arguments.tables) - set(tables):
        parser.error(f"no such table: {', '.join(sorted(unknown))}; use linear, ops, layer or host")
    if not torch.cuda.is_available():
        print("cuda_bench: PyTorch sees no GPU: nothing to time", file=sys.stderr)
        return 0
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds, cold L2, median of {arguments.repeats}")
    clock = Clock(arguments.repeats)
    with torch.no_grad():
        results = {name: tables[name](clock, arguments) for name in arguments.tables}
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
