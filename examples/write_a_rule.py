"""Write rules: a Python condition decides which kernel runs which problem."""

import numpy as np

import xpuruntime as xrt


# A condition reads the whole problem and the device's profile. What it raises turns the rule down, with the text.
@xrt.register_rule("matmul", kernel="reference")
def few_rows(problem: xrt.Problem, profile: xrt.DeviceProfile) -> bool:
    return problem.inputs[0].shape[0] <= 2


def decided(rows: int) -> str:
    x, weight = np.ones((rows, 32), np.float32), np.ones((32, 8), np.float32)
    xrt.ops.matmul(x, weight)
    decision = xrt.explain("matmul", x, weight)
    return f"{rows:3} rows: {decision.kernel} [{decision.level}] {decision.because}"


print(decided(1))
print(decided(100))

# Rules of higher priority are asked first; the same by call instead of as a decorator.
rule = xrt.register_rule("matmul", lambda problem, profile: problem.dtype == "f64", "reference", priority=10)
print(xrt.explain("matmul(f64[64,64], f64[64,64])").because)

xrt.unregister_rule(rule)
xrt.unregister_rule(few_rows)
print(decided(1))

# A rule that needs no code stands in a policy file, where it can be reviewed and shipped.
policy = xrt.KernelPolicy(rules=[{"op": "matmul", "when": {"m": {"<=": 2}}, "use": "reference"}])
with xrt.with_policy(policy):
    print(decided(1))
