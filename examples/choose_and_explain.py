"""Choose a kernel by policy, ask why it was chosen, and see what ran."""

import numpy as np

import xpuruntime as xrt

a = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
b = np.random.default_rng(1).standard_normal((64, 64)).astype(np.float32)

# Nobody said anything: built-in rules and the order of the table decide, and the decision says so.
print(xrt.explain("matmul", a, b))

# A preference: taken where the kernel can run it. A name that no backend has is an error that lists the near ones.
xrt.set_kernel_policy(xrt.KernelPolicy(matmul=["cublasLt", "reference"]))
decision = xrt.explain("matmul", a, b)
print(f"\n{decision.kernel} [{decision.level}]: {decision.because}")
for candidate in decision.candidates:
    print(f"  {candidate.outcome:8} {candidate.kernel:10} {candidate.reason}")

# Forced for a block: it runs, or fails with the reason. The log tells what ran.
xrt.enable_dispatch_logging()
with xrt.with_policy(xrt.KernelPolicy(matmul={"kernel": "packed", "mode": "force"})):
    product = xrt.ops.matmul(a, b)
for log in xrt.get_dispatch_logs():
    print(f"\n{log.op_name} on {log.input_shape} ran {log.selected_kernel} in {log.elapsed_us:.1f} us")
np.testing.assert_allclose(product, a @ b, rtol=1e-4, atol=1e-4)

# The same question without arrays, for any problem.
print(xrt.explain("conv2d(f32[1,64,56,56], f32[64,64,3,3]; padding=1,1)").because)
