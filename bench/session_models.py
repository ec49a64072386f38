"""The models of session_bench: written here as PyTorch's exporter writes them, and published ones from packages.

`made()` and `published(folder)` give {name: (model, inputs)}; a model is an onnx.ModelProto or the path of a file, inputs are
arrays by name. Weights are random, of sizes that keep what flows through a network near 1.
"""

from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper

RANDOM = np.random.default_rng(7)


class Graph:
    """Nodes and constants, written one after the other; every call gives the name of a result."""

    def __init__(self):
        self.nodes, self.constants, self.inputs, self.outputs, self.arrays = [], [], [], [], {}
        self.count = 0

    def constant(self, array, name="c"):
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"{name}{self.count}"))
        return self.constants[-1].name

    def weight(self, *shape, inputs=None):
        fan = inputs or int(np.prod(shape[1:]))
        return self.constant((RANDOM.standard_normal(shape) * (2 / fan) ** 0.5).astype(np.float32), "w")

    def vector(self, size, value=0.0):
        return self.constant((value + 0.05 * RANDOM.standard_normal(size)).astype(np.float32), "v")

    def number(self, value):
        return self.constant(np.array(value, np.float32))

    def integers(self, *values):
        return self.constant(np.array(values, np.int64))

    def call(self, op, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{op}_{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, list(inputs), names, f"{op}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def input(self, name, array):
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape))
        self.arrays[name] = array
        return name

    def output(self, name):
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, None))

    def finish(self, opset=17):
        graph = helper.make_graph(self.nodes, "model", self.inputs, self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), self.arrays


def numbers(*shape):
    return RANDOM.standard_normal(shape).astype(np.float32)


def linear(g, x, rows, columns):
    """As torch.nn.Linear on three dims: a product and a sum."""
    return g.call("Add", g.vector(columns), g.call("MatMul", x, g.weight(rows, columns, inputs=2 * rows)))


def layer_norm(g, x, width):
    """As exporters write it before opset 17."""
    off = g.call("Sub", x, g.call("ReduceMean", x, axes=[-1]))
    variance = g.call("ReduceMean", g.call("Pow", off, g.number(2)), axes=[-1])
    normed = g.call("Div", off, g.call("Sqrt", g.call("Add", variance, g.number(1e-5))))
    return g.call("Add", g.call("Mul", normed, g.vector(width, 1.0)), g.vector(width))


def gelu(g, x):
    inner = g.call("Add", g.call("Erf", g.call("Div", x, g.number(2**0.5))), g.number(1))
    return g.call("Mul", g.call("Mul", x, inner), g.number(0.5))


def new_gelu(g, x):
    cubic = g.call("Mul", g.number(0.044715), g.call("Pow", x, g.number(3)))
    inner = g.call("Tanh", g.call("Mul", g.number((2 / np.pi) ** 0.5), g.call("Add", x, cubic)))
    return g.call("Mul", g.call("Mul", g.number(0.5), x), g.call("Add", g.number(1), inner))


def heads_of(g, x, batch, length, heads, size, perm):
    return g.call("Transpose", g.call("Reshape", x, g.integers(batch, length, heads, size)), perm=perm)


def encoder(layers=4, width=512, heads=8, length=128, vocabulary=2000):
    """BERT-like: tokens to states, with a mask."""
    g = Graph()
    tokens = g.input("tokens", RANDOM.integers(0, vocabulary, (1, length)))
    mask = g.input("mask", np.where(np.arange(length) < length - 9, 0, -1e4).astype(np.float32).reshape(1, 1, 1, length))
    x = g.call("Add", g.call("Gather", g.weight(vocabulary, width), tokens), g.weight(length, width))
    x = layer_norm(g, x, width)
    for _ in range(layers):
        q, k, v = (linear(g, x, width, width) for _ in range(3))
        q = heads_of(g, q, 1, length, heads, width // heads, [0, 2, 1, 3])
        k = heads_of(g, k, 1, length, heads, width // heads, [0, 2, 3, 1])
        v = heads_of(g, v, 1, length, heads, width // heads, [0, 2, 1, 3])
        scores = g.call("Div", g.call("MatMul", q, k), g.number((width // heads) ** 0.5))
        mixed = g.call("MatMul", g.call("Softmax", g.call("Add", scores, mask), axis=-1), v)
        mixed = g.call("Reshape", g.call("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers(1, length, width))
        x = layer_norm(g, g.call("Add", linear(g, mixed, width, width), x), width)
        hidden = gelu(g, linear(g, x, width, 4 * width))
        x = layer_norm(g, g.call("Add", linear(g, hidden, 4 * width, width), x), width)
    g.output(x)
    return g.finish()


def decoder_step(layers=4, width=512, heads=8, past=255, vocabulary=8000):
    """GPT-like: one token, keys and values of the tokens before it as inputs, and with this one's as outputs."""
    g, size = Graph(), width // heads
    x = g.call("Gather", g.weight(vocabulary, width), g.input("token", RANDOM.integers(0, vocabulary, (1, 1))))
    for layer in range(layers):
        h = layer_norm(g, x, width)
        q, k, v = g.call("Split", linear(g, h, width, 3 * width), g.integers(width, width, width), outputs=3, axis=-1)
        q, k, v = (heads_of(g, part, 1, 1, heads, size, [0, 2, 1, 3]) for part in (q, k, v))
        k = g.call("Concat", g.input(f"keys{layer}", numbers(1, heads, past, size)), k, axis=2)
        v = g.call("Concat", g.input(f"values{layer}", numbers(1, heads, past, size)), v, axis=2)
        g.output(k)
        g.output(v)
        scores = g.call("Div", g.call("MatMul", q, g.call("Transpose", k, perm=[0, 1, 3, 2])), g.number(size**0.5))
        mixed = g.call("MatMul", g.call("Softmax", scores, axis=-1), v)
        mixed = g.call("Reshape", g.call("Transpose", mixed, perm=[0, 2, 1, 3]), g.integers(1, 1, width))
        x = g.call("Add", x, linear(g, mixed, width, width))
        x = g.call("Add", x, linear(g, new_gelu(g, linear(g, layer_norm(g, x, width), width, 4 * width)), 4 * width, width))
    g.output(g.call("MatMul", layer_norm(g, x, width), g.weight(width, vocabulary)))
    return g.finish()


def conv(g, x, inputs, outputs, kernel, stride=1, groups=1, norm=False):
    weight = g.weight(outputs, inputs // groups, kernel, kernel)
    bias = [] if norm else [g.vector(outputs)]
    x = g.call("Conv", x, weight, *bias, strides=[stride] * 2, pads=[kernel // 2] * 4, group=groups, kernel_shape=[kernel] * 2)
    if not norm:
        return x
    statistics = g.vector(outputs), g.constant(RANDOM.uniform(0.8, 1.2, outputs).astype(np.float32))
    return g.call("BatchNormalization", x, g.vector(outputs, 0.7), g.vector(outputs), *statistics)


def resnet50(image=224):
    g = Graph()
    x = g.call("Relu", conv(g, g.input("image", numbers(1, 3, image, image)), 3, 64, 7, 2, norm=True))
    x = g.call("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for width, blocks, first in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first if block == 0 else 1
            y = g.call("Relu", conv(g, x, channels, width, 1, norm=True))
            y = g.call("Relu", conv(g, y, width, width, 3, stride, norm=True))
            y = conv(g, y, width, 4 * width, 1, norm=True)
            if block == 0:
                x = conv(g, x, channels, 4 * width, 1, stride, norm=True)
            x, channels = g.call("Relu", g.call("Add", y, x)), 4 * width
    x = g.call("Flatten", g.call("GlobalAveragePool", x))
    g.output(g.call("Gemm", x, g.weight(1000, channels), g.vector(1000), transB=1))
    return g.finish()


def mobilenet(image=224):
    """MobileNet V2, its norms folded as PyTorch's exporter does."""
    g = Graph()

    def bounded(x):
        return g.call("Clip", x, g.number(0), g.number(6))

    x, channels = bounded(conv(g, g.input("image", numbers(1, 3, image, image)), 3, 32, 3, 2)), 32
    for grow, width, blocks, first in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                       (6, 160, 3, 2), (6, 320, 1, 1)):
        for block in range(blocks):
            stride, inner = first if block == 0 else 1, grow * channels
            y = x if grow == 1 else bounded(conv(g, x, channels, inner, 1))
            y = conv(g, bounded(conv(g, y, inner, inner, 3, stride, groups=inner)), inner, width, 1)
            x, channels = (g.call("Add", x, y) if stride == 1 and channels == width else y), width
    x = g.call("Flatten", g.call("GlobalAveragePool", bounded(conv(g, x, channels, 1280, 1))))
    g.output(g.call("Gemm", x, g.weight(1000, 1280), g.vector(1000), transB=1))
    return g.finish()


def perceptron(batch=32, sizes=(784, 1024, 1024, 10)):
    g = Graph()
    x = g.input("x", numbers(batch, sizes[0]))
    for rows, columns in zip(sizes, sizes[1:]):
        x = g.call("Gemm", x, g.weight(columns, rows), g.vector(columns), transB=1)
        x = g.call("Relu", x) if columns != sizes[-1] else x
    g.output(g.call("Softmax", x, axis=-1))
    return g.finish()


def lstm(length=64, width=128, hidden=256, layers=2):
    g = Graph()
    x = g.input("x", numbers(length, 1, width))
    for layer in range(layers):
        weights = [g.constant(0.08 * numbers(1, 4 * hidden, size)) for size in (width if layer == 0 else hidden, hidden)]
        states = [g.constant(np.zeros((1, 1, hidden), np.float32)) for _ in range(2)]
        y = g.call("LSTM", x, *weights, g.constant(0.05 * numbers(1, 8 * hidden)), "", *states, outputs=3, hidden_size=hidden)[0]
        x = g.call("Squeeze", y, g.integers(1))
    g.output(linear(g, x, hidden, 10))
    return g.finish()


def made():
    return {"bert": encoder, "gpt-step": decoder_step, "resnet50": resnet50, "mobilenet": mobilenet, "mlp": perceptron,
            "lstm": lstm}


PACKAGES = {
    "ocr-det": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx", lambda: {"x": numbers(1, 3, 320, 320)}),
    "ocr-rec": ("rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx", lambda: {"x": numbers(1, 3, 48, 320)}),
    "ocr-cls": ("rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx", lambda: {"x": numbers(1, 3, 48, 192)}),
    "vad": ("silero_vad/data/silero_vad.onnx",
            lambda: {"input": 0.1 * numbers(1, 576), "state": numbers(2, 1, 128), "sr": np.array(16000)}),
}


def published(folders):
    """Those whose packages, rapidocr-onnxruntime and silero-vad, lie in one of these folders."""
    found = {}
    for name, (path, inputs) in PACKAGES.items():
        file = next((Path(folder, path) for folder in folders if Path(folder, path).is_file()), None)
        if file is not None:
            found[name] = (file, inputs)
    return found
