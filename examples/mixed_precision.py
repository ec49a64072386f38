"""Mixed precision: which ops run in 16 bits, and a loss scale that keeps small gradients alive."""

import numpy as np

import xpuruntime as xrt

x = np.random.default_rng(0).standard_normal((8, 16)).astype(np.float32)
weight = np.random.default_rng(1).standard_normal((4, 16)).astype(np.float32)

# Under autocast a matrix product runs in bf16; a softmax stays in f32. The decision says who asked for it.
with xrt.autocast("bf16"):
    print(xrt.explain("linear", x, weight).to_dict()["precision"])
    print(xrt.explain("softmax", x).to_dict()["precision"])
    y = xrt.ops.linear(x, weight)
print(y.dtype, float(np.abs(y.astype(np.float32) - x @ weight.T).max()))

# The rules are a list that can be read and changed, forward and backward apart.
with xrt.with_policy(xrt.KernelPolicy(precision={"softmax": {"forward": "bf16", "backward": "f32"}})):
    print(xrt.explain("softmax", x).to_dict()["precision"])

# One step of training by hand: scale, go back, unscale, and change the weight only if all gradients are finite.
scaler = xrt.GradScaler(initial_scale=1024.0)
grad_output = scaler.scale(np.ones((8, 4), np.float32))
_, grad = xrt.backward("linear", x, weight, grad_output=grad_output)
scaler.unscale([grad])


def apply() -> None:
    weight[...] -= 0.01 * grad


print("stepped:", scaler.step(apply))
scaler.update()
np.testing.assert_allclose(grad, np.tile(x.sum(0), (4, 1)), rtol=1e-5, atol=1e-5)
