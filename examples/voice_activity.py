"""A published model that is called again and again: how likely is speech in each piece of a sound?

The model comes with a package of the registry: pip install --no-deps silero-vad==6.2.0
"""

import importlib.util
import pathlib
import sys
import time

import numpy as np

import xpuruntime as xrt

package = importlib.util.find_spec("silero_vad")
if package is None or not package.submodule_search_locations:
    sys.exit("the model is missing: pip install --no-deps silero-vad==6.2.0")
path = pathlib.Path(package.submodule_search_locations[0]) / "data" / "silero_vad.onnx"

# `sr`, the sampling rate, decides between two networks inside: such a value is known when the model is made ready.
model = xrt.load(path, execution=xrt.ExecutionPolicy(target="cpu", execution_timeout_ms=1000))
rate, size, before = np.array(16000), 512, 64
print(*model.inputs, sep="\n")

# Two seconds of noise, in the middle a vowel: a low tone and its overtones, loudest where those of "ee" are.
seconds = np.arange(2 * 16000) / 16000
turns = 140 * np.cumsum(1 + 0.03 * np.sin(2 * np.pi * 5 * seconds)) / 16000
loudness = {k: sum(1 / (1 + ((140 * k - peak) / 100) ** 2) for peak in (300, 2200, 3000)) for k in range(1, 25)}
vowel = sum(loudness[k] * np.sin(2 * np.pi * k * turns) for k in loudness) * (abs(seconds - 1) < 0.5)
sound = (0.1 * vowel + np.random.default_rng(0).normal(0, 0.003, seconds.size)).astype(np.float32)

# Each piece goes in with the end of the one before it, and with the state that the last run gave.
state, times = np.zeros((2, 1, 128), np.float32), []
for start in range(before, sound.size - size, size):
    begin = time.perf_counter()
    result = model.run({"input": sound[None, start - before:start + size], "state": state, "sr": rate})
    times.append(time.perf_counter() - begin)
    state = result["stateN"]
    if start // size % 6 == 0:
        print(f"{start / 16000:5.2f} s  {'#' * round(40 * float(result['output'].item()))}")
print(f"{len(times)} pieces of 32 ms, each in {1e3 * np.median(times):.2f} ms")
