"""ONNX Runtime as a peer of cpu_bench: one-op models, asked for line by line.

Each line on stdin is a JSON object, each answer one on stdout:
  {"make": {"op", "aliases", "inputs": [{"dtype", "shape", "file"}], "outputs": [{"dtype", "shape"}], "attributes"}, "output": file}
      -> {"ok": true}, or {"why": text} where there is no such op or dtype
  {"run": calls} -> {"seconds": s}
Every tensor is an input of the graph, so that nothing can be packed ahead of the calls; inputs and outputs are bound
to memory once. Started with the number of threads; the first line out is {"version": text}, or {"absent": why}.
"""

import json
import sys
import time

try:
    import numpy
    import onnxruntime
    from onnx import TensorProto, checker, defs, helper
except ImportError as error:
    print(json.dumps({"absent": str(error)}), flush=True)
    sys.exit(0)

TYPES = {
    "f64": (TensorProto.DOUBLE, numpy.float64),
    "f32": (TensorProto.FLOAT, numpy.float32),
    "f16": (TensorProto.FLOAT16, numpy.float16),
    "bf16": (TensorProto.BFLOAT16, numpy.uint16),  # numpy has no such type: the bits
    "i64": (TensorProto.INT64, numpy.int64),
    "i32": (TensorProto.INT32, numpy.int32),
    "i8": (TensorProto.INT8, numpy.int8),
    "u8": (TensorProto.UINT8, numpy.uint8),
    "bool": (TensorProto.BOOL, numpy.bool_),
}
OPSET = 23
KINDS = {schema.name.lower(): schema.name for schema in defs.get_all_schemas()}
REDUCTIONS = {
    "reduce_sum": "ReduceSum",
    "reduce_mean": "ReduceMean",
    "reduce_max": "ReduceMax",
    "reduce_min": "ReduceMin",
}


class Absent(Exception):
    """ONNX has no such op."""


class Graph:
    """Nodes, and constants that are part of the op rather than data."""

    def __init__(self, request):
        self.op = request["op"]
        self.aliases = request["aliases"].split("|")
        self.inputs = request["inputs"]
        self.outputs = request["outputs"]
        self.attributes = request["attributes"]
        self.names = [f"x{i}" for i in range(len(self.inputs))]
        self.nodes = []
        self.constants = []

    def node(self, kind, inputs, output="y", **attributes):
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        return output

    def integers(self, name, values):
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(values)], values))
        return name

    def rank(self, i):
        return len(self.inputs[i]["shape"])

    def model(self, opset):
        def info(name, spec):
            return helper.make_tensor_value_info(name, TYPES[spec["dtype"]][0], spec["shape"])

        used = {name for node in self.nodes for name in node.input}
        inputs = [info(n, s) for n, s in zip(self.names, self.inputs) if n in used]
        graph = helper.make_graph(self.nodes, "one", inputs, [info("y", self.outputs[0])], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
        checker.check_model(model)
        return model


def same(g):
    """ONNX's operator that has the op's name or an alias of it."""
    kind = next((KINDS[name] for name in (n.replace("_", "") for n in (g.op, *g.aliases)) if name in KINDS), None)
    if kind is None:
        raise Absent("ONNX has no such op")
    known = defs.get_schema(kind, OPSET).attributes
    given = {{"eps": "epsilon", "dim": "axis"}.get(name, name): value for name, value in g.attributes.items()}
    g.node(kind, g.names, **{name: value for name, value in given.items() if name in known})


def matmul(g):
    names = list(g.names)
    for i, flag in enumerate(("transpose_a", "transpose_b")):
        if g.attributes[flag]:
            order = list(range(g.rank(i)))
            order[-2:] = order[:-3:-1]
            names[i] = g.node("Transpose", [names[i]], f"t{i}", perm=order)
    g.node("MatMulInteger" if g.inputs[0]["dtype"] == "i8" else "MatMul", names)


def linear(g):
    activation = g.attributes["activation"]
    if g.inputs[0]["dtype"] == "i8":
        g.node("Transpose", [g.names[1]], "t", perm=[1, 0])
        return g.node("MatMulInteger", [g.names[0], "t"])
    if activation == "none":
        return g.node("Gemm", g.names, transB=1)
    g.node("Gemm", g.names, "z", transB=1)
    if activation == "silu":
        g.node("Sigmoid", ["z"], "s")
        return g.node("Mul", ["z", "s"])
    return g.node({"relu": "Relu", "gelu": "Gelu"}[activation], ["z"])


def convolution(g):
    a = g.attributes
    g.node("Conv", g.names, strides=a["stride"], pads=a["padding"] * 2, dilations=a["dilation"], group=a["groups"])


def attention(g):
    if len(g.names) == 4:  # the mask must have a row for each query
        rows = [g.inputs[0]["shape"][2], g.inputs[1]["shape"][2]]
        shape = g.integers("shape", g.inputs[3]["shape"][:-2] + rows)
        g.node("Expand", [g.names[3], shape], "mask")
    scale = {"scale": g.attributes["scale"]} if g.attributes["scale"] else {}
    g.node("Attention", g.names[:3] + ["mask"] * (len(g.names) - 3), is_causal=int(g.attributes["causal"]), **scale)


def pool(g):
    a = g.attributes
    stride = [s or k for s, k in zip(a["stride"], a["kernel_size"])]
    rest = {"dilations": a["dilation"]} if "max" in g.op else {"count_include_pad": int(a["count_include_pad"])}
    g.node("MaxPool" if "max" in g.op else "AveragePool", g.names, kernel_shape=a["kernel_size"], strides=stride,
           pads=a["padding"] * 2, ceil_mode=int(a["ceil_mode"]), **rest)


def batch_norm(g):
    a = g.attributes
    if a["training"] or len(g.names) != 5:
        raise Absent("batch statistics are for training")
    x, mean, variance, weight, bias = g.names
    g.node("BatchNormalization", [x, weight, bias, mean, variance], epsilon=a["eps"])


def normalize(g):
    if g.attributes["p"] not in (1, 2):
        raise Absent("LpNormalization takes p of 1 or 2")
    g.node("LpNormalization", g.names, axis=g.attributes["dim"], p=int(g.attributes["p"]))


def dropout(g):
    g.constants.append(helper.make_tensor("p", TensorProto.FLOAT, [], [g.attributes["p"]]))
    g.constants.append(helper.make_tensor("on", TensorProto.BOOL, [], [g.attributes["training"]]))
    g.node("Dropout", [*g.names, "p", "on"], seed=1)


def silu(g):
    g.node("Sigmoid", g.names, "s")
    g.node("Mul", [*g.names, "s"])


def reduction(g):
    axes = [g.integers("axes", g.attributes["dim"])] if g.attributes["dim"] else []
    g.node(REDUCTIONS[g.op], g.names + axes, keepdims=int(g.attributes["keepdim"]))


def class_loss(g):
    if g.attributes.get("label_smoothing"):
        raise Absent("ONNX's loss has no label smoothing")
    kind = "SoftmaxCrossEntropyLoss" if g.op == "cross_entropy" else "NegativeLogLikelihoodLoss"
    g.node(kind, g.names, reduction=g.attributes["reduction"], ignore_index=g.attributes["ignore_index"])


def transpose(g):
    g.node("Transpose", g.names, perm=g.attributes["dims"] or list(range(g.rank(0)))[::-1])


def piece(g):
    a = g.attributes
    g.node("Slice", g.names + [g.integers("from", [a["start"]]), g.integers("to", [a["end"]]),
                               g.integers("axis", [a["dim"]]), g.integers("step", [a["step"]])])


BUILDERS = {
    "matmul": matmul,
    "linear": linear,
    "conv2d": convolution,
    "conv3d": convolution,
    "attention": attention,
    "max_pool2d": pool,
    "max_pool3d": pool,
    "avg_pool2d": pool,
    "avg_pool3d": pool,
    "batch_norm1d": batch_norm,
    "batch_norm2d": batch_norm,
    "batch_norm3d": batch_norm,
    "layer_norm": lambda g: g.node("LayerNormalization", g.names, axis=-g.attributes["normalized_rank"],
                                   epsilon=g.attributes["eps"]),
    "normalize": normalize,
    "dropout": dropout,
    "silu": silu,
    "embedding": lambda g: g.node("Gather", g.names[::-1]),
    "cross_entropy": class_loss,
    "nll_loss": class_loss,
    "cast": lambda g: g.node("Cast", g.names, to=TYPES[g.outputs[0]["dtype"]][0]),
    "transpose": transpose,
    "copy": lambda g: g.node("Identity", g.names),
    "slice": piece,
    **{name: reduction for name in REDUCTIONS},
}


class Bound:
    """A session whose inputs and output are bound to memory."""

    def __init__(self, request, threads):
        graph = Graph(request)
        BUILDERS.get(graph.op, same)(graph)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        model = graph.model(OPSET).SerializeToString()
        self.session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        self.binding = self.session.io_binding()
        wanted = {each.name for each in self.session.get_inputs()}
        self.values = []
        for name, spec in zip(graph.names, request["inputs"]):
            if name in wanted:
                kind, dtype = TYPES[spec["dtype"]]
                data = numpy.fromfile(spec["file"], dtype).reshape(spec["shape"])
                value = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(data, kind)
                self.values.append((data, value))
                self.binding.bind_ortvalue_input(name, value)
        kind, dtype = TYPES[request["outputs"][0]["dtype"]]
        self.output = numpy.zeros(request["outputs"][0]["shape"], dtype)
        self.bound = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(self.output, kind)
        self.binding.bind_ortvalue_output("y", self.bound)
        # Past the Python class around it: its argument checks are no part of ONNX Runtime's work.
        self.call = self.session._sess.run_with_iobinding
        self.run(1)

    def run(self, calls):
        call, binding = self.call, self.binding._iobinding
        start = time.perf_counter()
        for _ in range(calls):
            call(binding, None)
        return time.perf_counter() - start


def answer(request, state, threads):
    if "run" in request:
        return {"seconds": state["bound"].run(request["run"])}
    state.clear()
    try:
        state["bound"] = Bound(request["make"], threads)
        state["bound"].output.tofile(request["output"])
        return {"ok": True}
    except Exception as error:  # whatever ONNX Runtime says, it is a reason for an empty column
        return {"why": str(error).splitlines()[0][:300]}


def main():
    threads = int(sys.argv[1])
    print(json.dumps({"version": onnxruntime.__version__}), flush=True)
    state = {}
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), state, threads)), flush=True)


if __name__ == "__main__":
    main()
