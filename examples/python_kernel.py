"""Plug in a kernel that is a Python function: it is chosen, explained, measured and refused like any other."""

import numpy as np

import xpuruntime as xrt


def supports(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool | str:
    """Yes, or the reason why not, which every decision then shows."""
    if problem.inputs[0].dtype != "f32":
        return f"it takes f32, not {problem.inputs[0].dtype}"
    return True


# The version says which code this is: a lock replays it, and times count, only for the same one.
@xrt.register_kernel("numpy", "softmax", supports=supports, version="1")
def softmax(problem: xrt.Problem, inputs: list[xrt.Tensor], outputs: list[xrt.Tensor]) -> None:
    x, out = inputs[0].numpy(), outputs[0].numpy()  # views: what is written here is the result
    dim = problem.attributes["dim"]
    weights = np.exp(x - x.max(dim, keepdims=True))
    np.divide(weights, weights.sum(dim, keepdims=True), out=out)


x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
usual = xrt.ops.softmax(x, dim=-1)

with xrt.with_policy(xrt.KernelPolicy(softmax="numpy")):
    print(xrt.explain("softmax", x, dim=-1))
    np.testing.assert_allclose(xrt.ops.softmax(x, dim=-1), usual, rtol=1e-6)

    # A problem that it does not take goes to another kernel; the decision says why.
    decision = xrt.explain("softmax", x.astype(np.float64), dim=-1)
    reasons = [candidate.reason for candidate in decision.candidates if candidate.kernel == "numpy"]
    print(f"\nf64 runs {decision.kernel}, as numpy says: {reasons[0]}")

    # Nor is it asked for the gradient, which is another computation: that takes directions=["forward", "backward"].
    upstream = np.ones_like(x)
    upstream[:, 0] = 3
    decision = xrt.explain("softmax:backward(f32[4,8], f32[4,8]; dim=-1)")
    reasons = [candidate.reason for candidate in decision.candidates if candidate.kernel == "numpy"]
    (gradient,) = xrt.backward("softmax", x, dim=-1, grad_output=upstream)
    np.testing.assert_allclose(gradient, usual * (upstream - (upstream * usual).sum(-1, keepdims=True)), atol=1e-6)
    print(f"backward runs {decision.kernel}, as numpy is {reasons[0]}")

xrt.unregister_kernel("numpy", "softmax")
