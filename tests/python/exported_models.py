"""Models as PyTorch's exporter writes them, with the architectures of well-known ones and fewer channels."""

from __future__ import annotations

import inspect
import io
import warnings
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn


class Exported(NamedTuple):
    """A module, and inputs of two sizes to run it on; the first ones it is exported with."""

    module: nn.Module
    inputs: list[dict[str, np.ndarray]]
    outputs: list[str]
    dynamic: dict[str, dict[int, str]]


def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
    scores = q @ k.transpose(-1, -2) / q.shape[-1]**0.5
    return torch.softmax(scores + mask, -1) @ v


class Layer(nn.Module):
    """A transformer's layer; with a cache it reads the keys and values of earlier tokens too."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down, self.act = nn.Linear(width, 4 * width), nn.Linear(4 * width, width), nn.GELU()

    def forward(self, x: Any, mask: Any, cache: Any = None) -> Any:
        batch, length, width = x.shape
        split = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        if cache is not None:
            k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
        x = x + self.out(attend(q, k, v, mask).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.act(self.up(self.norm2(x)))), k, v


class Encoder(nn.Module):
    """BERT's shape: tokens and a mask of those that count, to a vector for each and one for all."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(100, width), nn.Embedding(64, width), nn.LayerNorm(width)
        self.layers, self.pool = nn.ModuleList(Layer(width, 4) for _ in range(2)), nn.Linear(width, width)

    def forward(self, ids: Any, mask: Any) -> Any:
        x = self.norm(self.words(ids) + self.places(torch.arange(ids.shape[1])))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)[0]
        return x, torch.tanh(self.pool(x[:, 0]))


class DecoderStep(nn.Module):
    """GPT's shape, one token at a time: keys and values of the earlier ones come in and go out."""

    def __init__(self, width: int = 64) -> None:
        super().__init__()
        self.words, self.places, self.norm = nn.Embedding(100, width), nn.Embedding(64, width), nn.LayerNorm(width)
        self.layers = nn.ModuleList(Layer(width, 4) for _ in range(2))

    def forward(self, ids: Any, k0: Any, v0: Any, k1: Any, v1: Any) -> Any:
        length = k0.shape[2]
        x = self.words(ids) + self.places(torch.arange(length, length + ids.shape[1]))
        found = []
        for layer, cache in zip(self.layers, ((k0, v0), (k1, v1))):
            x, k, v = layer(x, torch.zeros(1), cache)
            found += [k, v]
        return (self.norm(x) @ self.words.weight.t(), *found)


def conv(size_in: int, size_out: int, kernel: int, stride: int = 1, groups: int = 1, act: Any = nn.ReLU) -> nn.Sequential:
    parts = [nn.Conv2d(size_in, size_out, kernel, stride, kernel // 2, groups=groups, bias=False), nn.BatchNorm2d(size_out)]
    return nn.Sequential(*parts, *([act()] if act else []))


class Bottleneck(nn.Module):
    def __init__(self, size_in: int, size: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(size_in, size, 1), conv(size, size, 3, stride), conv(size, 4 * size, 1, act=None))
        self.skip = conv(size_in, 4 * size, 1, stride, act=None) if stride > 1 or size_in != 4 * size else nn.Identity()

    def forward(self, x: Any) -> Any:
        return torch.relu(self.body(x) + self.skip(x))


def resnet(size: int = 8) -> nn.Sequential:
    """ResNet-50's 16 blocks."""
    parts: list[nn.Module] = [conv(3, size, 7, 2), nn.MaxPool2d(3, 2, 1)]
    size_in = size
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            parts.append(Bottleneck(size_in, size << stage, 2 if stage > 0 and block == 0 else 1))
            size_in = 4 * (size << stage)
    return nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(size_in, 10))


class Inverted(nn.Module):
    """MobileNetV3's block: wide inside, depthwise, channels weighted by what the whole image shows."""

    def __init__(self, size: int, stride: int) -> None:
        super().__init__()
        wide, self.residual = 3 * size, stride == 1
        self.widen = conv(size, wide, 1, act=nn.Hardswish)
        self.depthwise = conv(wide, wide, 5, stride, wide, nn.Hardswish)
        self.weights = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(wide, 8, 1), nn.ReLU(), nn.Conv2d(8, wide, 1),
                                     nn.Hardsigmoid())
        self.narrow = conv(wide, size, 1, act=None)

    def forward(self, x: Any) -> Any:
        y = self.depthwise(self.widen(x))
        y = self.narrow(y * self.weights(y))
        return x + y if self.residual else y


def mobilenet(size: int = 16) -> nn.Sequential:
    return nn.Sequential(conv(3, size, 3, 2, act=nn.Hardswish), *(Inverted(size, 2 if i % 3 == 0 else 1) for i in range(6)),
                         nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(size, 64), nn.ReLU6(), nn.Linear(64, 10))


class Recurrent(nn.Module):
    """Two layers of LSTM in both directions."""

    def __init__(self, size: int = 24) -> None:
        super().__init__()
        self.lstm, self.out = nn.LSTM(12, size, 2, batch_first=True, bidirectional=True), nn.Linear(2 * size, 5)

    def forward(self, x: Any) -> Any:
        y, (hidden, cell) = self.lstm(x)
        return self.out(y), hidden, cell


class Settling(nn.Module):
    """A cell until its state is small, and at most so many steps: a loop of a scripted model."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, most: torch.Tensor):  # type: ignore[no-untyped-def]
        steps = torch.zeros(1)
        i = 0
        while i < int(most) and bool((x.abs().max() - 0.05).relu()):
            x = 0.5 * torch.tanh(self.cell(x))
            steps = steps + 1
            i += 1
        return x, steps


def settling() -> tuple[nn.Module, bytes]:
    """With inputs `x` and `most`, results `y` and `steps`."""
    torch.manual_seed(6)
    module = Settling().eval()
    keywords = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(torch.jit.script(module), (torch.ones(2, 8), torch.tensor(5)), file, opset_version=16,
                          input_names=["x", "most"], output_names=["y", "steps"], dynamic_axes={"x": {0: "batch"}}, **keywords)
    return module, file.getvalue()


def lively(module: nn.Module) -> nn.Module:
    """With weights that keep values large through many layers, and norms that do something."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight)
        if isinstance(part, nn.BatchNorm2d):
            for values, low, high in ((part.weight, 0.6, 1.2), (part.bias, -0.2, 0.2), (part.running_mean, -0.2, 0.2),
                                      (part.running_var, 0.7, 1.4)):
                nn.init.uniform_(values, low, high)
    return module


def models() -> dict[str, Exported]:
    """Each with weights that are the same in every run."""
    torch.manual_seed(5)
    random = np.random.default_rng(5)

    def real(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32)

    def tokens(batch: int, length: int) -> np.ndarray:
        return random.integers(0, 100, (batch, length))

    def step(batch: int, length: int) -> dict[str, np.ndarray]:
        return {"ids": tokens(batch, 1), **{name: real(batch, 4, length, 16) for name in ("k0", "v0", "k1", "v1")}}

    def sentence(batch: int, length: int) -> dict[str, np.ndarray]:
        return {"ids": tokens(batch, length), "mask": (np.arange(length) < np.arange(batch)[:, None] + 3).astype(np.int64)}

    batch, image = {0: "batch"}, [{"x": real(1, 3, 64, 64)}, {"x": real(3, 3, 64, 64)}]
    mlp = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 64), nn.SiLU(),
                        nn.Linear(64, 3), nn.Softmax(-1))
    sequence, cached = {0: "batch", 1: "length"}, {0: "batch", 2: "past"}
    return {
        "bert": Exported(Encoder(), [sentence(2, 7), sentence(3, 12)], ["y", "pooled"], {"ids": sequence, "mask": sequence}),
        "gpt_step": Exported(DecoderStep(), [step(2, 5), step(1, 9)], ["y", "k2", "v2", "k3", "v3"],
                             {"ids": batch, **dict.fromkeys(("k0", "v0", "k1", "v1"), cached)}),
        "resnet50": Exported(lively(resnet()), image, ["y"], {"x": batch}),
        "mobilenet": Exported(lively(mobilenet()), image, ["y"], {"x": batch}),
        "mlp": Exported(mlp, [{"x": real(1, 20)}, {"x": real(9, 20)}], ["y"], {"x": batch}),
        "lstm": Exported(Recurrent(), [{"x": real(2, 6, 12)}, {"x": real(2, 11, 12)}], ["y", "hidden", "cell"],
                         {"x": {1: "length"}}),
    }


def onnx_bytes(model: Exported, opset: int = 16) -> bytes:
    """What the exporter that all versions have writes; its own optimisations would leave us nothing to do."""
    keywords = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    # Lists: PyTorch of Debian cannot read arrays of NumPy 2.
    tensors = tuple(torch.tensor(array.tolist(), dtype=torch.int64 if array.dtype == np.int64 else torch.float32)
                    for array in model.inputs[0].values())
    file = io.BytesIO()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # about what tracing takes for a constant, and is one
        torch.onnx.export(model.module.eval(), tensors, file, opset_version=opset, input_names=list(model.inputs[0]),
                          output_names=model.outputs, dynamic_axes=model.dynamic, do_constant_folding=False,
                          training=torch.onnx.TrainingMode.PRESERVE, **keywords)  # norms are not folded
    return file.getvalue()
