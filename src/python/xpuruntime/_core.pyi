"""The library behind xpuruntime. Use the names of the package itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence
import enum
import os
from typing import Any, ClassVar

from xpuruntime import ops as ops
from dataclasses import Field


class Device:
    """One device of this machine: cuda:0."""

    def __init__(self, name: object) -> None: ...

    @property
    def type(self) -> str:
        """Its kind: cpu, cuda, opencl."""

    @property
    def index(self) -> int: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

class Tensor:
    """
    Memory on a device with a dtype, a shape and strides. Speaks DLPack and, on the CPU, Python's buffers.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""

    @property
    def dtype(self) -> str: ...

    @property
    def device(self) -> Device: ...

    @property
    def ndim(self) -> int: ...

    @property
    def size(self) -> int:
        """How many elements it has."""

    @property
    def read_only(self) -> bool: ...

    def numpy(self) -> Any:
        """A NumPy array on the same memory; only on the CPU."""

    def __array__(self, dtype: object = None, copy: object = None) -> Any: ...

    def to(self, device: object) -> Tensor:
        """A contiguous copy on another device; waits until it is there."""

    def __dlpack_device__(self) -> tuple[int, int]: ...

    def __dlpack__(self, *, stream: object = None, max_version: object = None, dl_device: object = None, copy: object = None) -> Any: ...

    def __len__(self) -> int: ...

    def __repr__(self) -> str: ...

def empty(shape: int | Sequence[int], dtype: object = 'f32', *, device: object = 'cpu') -> Tensor:
    """A new tensor on a device, not filled."""

def asarray(array: object) -> Tensor:
    """A tensor on the memory of an array of any package, without a copy."""

class AutoSelectStrategy(enum.Enum):
    """How a kernel is chosen where neither a policy nor a rule names one."""

    FIRST_SUPPORTED = 0
    """The first in the backend's order that can run it."""

    BEST_PERFORMANCE = 1
    """The fastest that was measured."""

    LOWEST_MEMORY = 2
    """The one that needs the least temporary memory."""

class KernelPolicy:
    """
    Which kernel for which op, and the bounds. Ops and fields are keywords.
    """

    def __init__(self, *, preferences: Mapping[str, object] | None = None, rules: Sequence[Mapping[str, object]] | None = None, precision: Mapping[str, object] | None = None, strategy: AutoSelectStrategy | str | int | None = None, auto_strategy: AutoSelectStrategy | str | int | None = None, default_precision: object = None, workspace_limit_bytes: int | None = None, deterministic: bool | None = None, threads: int | None = None, **ops: str | Sequence[str] | Mapping[str, str]) -> None: ...

    def set(self, op_name: str, kernel_name: str | Sequence[str] | Mapping[str, str]) -> KernelPolicy:
        """
        Prefers a kernel for an op, a list of them in order, or forces one. Returns the policy itself.
        """

    def set_order(self, op_name: str, kernels: Sequence[str]) -> KernelPolicy:
        """Prefers kernels in this order."""

    def force(self, op_name: str, kernel_name: str) -> KernelPolicy:
        """This kernel runs, or calls fail with the reason."""

    def get(self, op_name: str) -> str | list[str] | dict[str, str] | None:
        """What the policy says of an op; None: nothing."""

    def remove(self, op_name: str) -> bool:
        """Forgets an op; False where nothing was said of it."""

    def set_precision(self, op_name: str, forward: str | None = None, backward: str | None = None) -> KernelPolicy:
        """
        "lower", "higher", "keep" or a dtype for each direction; None leaves one open.
        """

    def remove_precision(self, op_name: str) -> bool:
        """Forgets the precision of an op; False where none was set."""

    @property
    def preferences(self) -> Mapping[str, str | list[str] | dict[str, str]]:
        """
        What it says of each op, under the name that the op was given by; found by any. Read-only: use set.
        """

    @preferences.setter
    def preferences(self, value: object) -> None: ...

    @property
    def rules(self) -> tuple[dict[str, object], ...]:
        """Declarative rules, as files have them."""

    @rules.setter
    def rules(self, value: object) -> None: ...

    @property
    def precision(self) -> Mapping[str, str | dict[str, str]]:
        """The precision of single ops. Read-only: use set_precision."""

    @precision.setter
    def precision(self, value: object) -> None: ...

    @property
    def auto_strategy(self) -> AutoSelectStrategy | None:
        """How a kernel is chosen that nothing names; None: not set."""

    @auto_strategy.setter
    def auto_strategy(self, value: object) -> None: ...

    @property
    def strategy(self) -> AutoSelectStrategy | None:
        """The same as auto_strategy."""

    @strategy.setter
    def strategy(self, value: object) -> None: ...

    @property
    def default_precision(self) -> str | None:
        """
        The dtype of calls that nothing else decides, such as "fp16"; None: their own.
        """

    @default_precision.setter
    def default_precision(self, value: object) -> None: ...

    @property
    def workspace_limit_bytes(self) -> int | None:
        """The most temporary memory that a kernel may ask for."""

    @workspace_limit_bytes.setter
    def workspace_limit_bytes(self, value: object) -> None: ...

    @property
    def deterministic(self) -> bool | None:
        """Whether only kernels run that give the same bits every time."""

    @deterministic.setter
    def deterministic(self, value: object) -> None: ...

    @property
    def threads(self) -> int | None:
        """The most threads that one call may use on the CPU."""

    @threads.setter
    def threads(self, value: object) -> None: ...

    def merge(self, other: KernelPolicy | Mapping[str, object]) -> KernelPolicy:
        """This policy with the other's fields where those are set."""

    def check(self) -> None:
        """Raises if it says something that cannot be."""

    def to_json(self) -> str:
        """The text that save writes."""

    @staticmethod
    def from_json(json: str) -> KernelPolicy:
        """Reads what to_json wrote."""

    def to_dict(self) -> dict[str, object]:
        """As the file has it."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> KernelPolicy:
        """Reads a file. What is wrong in it is an error with line and column."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: the old one or the new one is there, never half."""

    def __copy__(self) -> KernelPolicy: ...

    def __deepcopy__(self, memo: object | None) -> KernelPolicy: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: None = None  # type: ignore[assignment]

def as_policy(value: object) -> KernelPolicy: ...

def set_policy(policy: KernelPolicy) -> None: ...

def policy_in_force() -> KernelPolicy: ...

def findings_of_file(path: object, device: object) -> list[str]: ...

def findings_of_policy(policy: KernelPolicy, device: object) -> list[str]: ...

class Candidate:
    """One kernel that was looked at."""

    @property
    def kernel(self) -> str:
        """Its name."""

    @property
    def outcome(self) -> str:
        """
        "chosen": it runs. "refused": it cannot or may not. "passed": it could have run.
        """

    @property
    def reason(self) -> str:
        """Why it was chosen or refused; may be empty."""

    @property
    def time_us(self) -> float | None:
        """What was measured; None: nothing."""

    @property
    def workspace_bytes(self) -> int | None:
        """Temporary memory that it would ask for; None: not known."""

    @property
    def copied_bytes(self) -> int:
        """
        Copied to and from contiguous memory, because it refuses the layout or the alignment of tensors.
        """

    def __repr__(self) -> str: ...

class Precision:
    """The precision that one call is computed in, and who said so."""

    @property
    def forward(self) -> str:
        """The dtype of the forward direction."""

    @property
    def backward(self) -> str:
        """The dtype of the backward direction."""

    @property
    def because(self) -> str:
        """One sentence."""

    @property
    def wished(self) -> bool:
        """Somebody asked for it; else it is the inputs' own."""

    def __repr__(self) -> str: ...

class CastStep:
    """A tensor that is converted before or after the kernel runs."""

    @property
    def is_output(self) -> bool:
        """Of the call; else it is an input."""

    @property
    def index(self) -> int:
        """Among the call's inputs or outputs."""

    @property
    def from_dtype(self) -> str:
        """Before."""

    @property
    def to_dtype(self) -> str:
        """After."""

    @property
    def kernel(self) -> str:
        """Of the op cast."""

    def __repr__(self) -> str: ...

class CopyStep:
    """
    A tensor that the kernel gets as a contiguous copy, or writes to one that is copied back.
    """

    @property
    def is_output(self) -> bool:
        """Of the problem; else it is an input."""

    @property
    def index(self) -> int:
        """Among the problem's inputs or outputs."""

    @property
    def from_spec(self) -> TensorSpec:
        """Before."""

    @property
    def to_spec(self) -> TensorSpec:
        """After."""

    @property
    def kernel(self) -> str:
        """Of the op copy."""

    def __repr__(self) -> str: ...

class Decision:
    """What was chosen for a problem, why, and what was turned down and why."""

    @property
    def problem(self) -> Problem:
        """After the casts, before the copies."""

    @property
    def kernel(self) -> str | None:
        """None: nothing can run this, and `because` says why."""

    @property
    def kernel_version(self) -> str | None:
        """
        Of a kernel that somebody brought: its version, or "unversioned". None for kernels of xpuruntime.
        """

    @property
    def level(self) -> str:
        """Who decided: "lock", "force", "prefer", "rule" or "strategy"."""

    @property
    def because(self) -> str:
        """One sentence."""

    @property
    def precision(self) -> Precision:
        """What it is computed in, and who said so."""

    @property
    def casts(self) -> list[CastStep]:
        """Tensors that are converted, inputs first."""

    @property
    def copies(self) -> list[CopyStep]:
        """
        Tensors that are copied to contiguous memory and back for the kernel, inputs first.
        """

    @property
    def plan(self) -> str:
        """The plan's token; empty where the kernel had nothing to choose."""

    @property
    def workspace_bytes(self) -> int:
        """Temporary memory of the kernel."""

    @property
    def candidates(self) -> list[Candidate]:
        """Every kernel that was looked at."""

    def to_json(self, indent: int | None = 2) -> str:
        """One JSON document; indent=None: on one line."""

    def to_dict(self) -> dict[str, object]:
        """What to_json writes, as a dict."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

class DispatchLog:
    """One call that ran while logging was on."""

    @property
    def op_name(self) -> str:
        """What was computed."""

    @property
    def selected_kernel(self) -> str:
        """What ran it."""

    @property
    def input_shape(self) -> tuple[int, ...]:
        """Of the first input."""

    @property
    def dtype(self) -> str:
        """Of the first input, as NumPy and PyTorch write it: "float32"."""

    @property
    def elapsed_us(self) -> float:
        """Of the device where it can tell, else of the host."""

    @property
    def start_us(self) -> float:
        """Since the dispatcher was made."""

    @property
    def device_time(self) -> bool:
        """Whether elapsed_us was measured by device events."""

    @property
    def failed(self) -> bool:
        """
        The launch reported an error; the next entry of the problem is the fallback.
        """

    @property
    def thread(self) -> int:
        """A small number per thread."""

    @property
    def decision(self) -> Decision:
        """What was chosen, and why."""

    def __repr__(self) -> str: ...

def enable_dispatch_logging(capacity: int = 4096) -> None:
    """Logs calls from now on: the last `capacity` of each thread."""

def disable_dispatch_logging() -> None:
    """Logs no more; what is there stays."""

def dispatch_logging_enabled() -> bool:
    """Whether calls are being logged."""

def get_dispatch_logs() -> list[DispatchLog]:
    """What was logged, oldest first."""

def dropped_logs() -> int:
    """
    How many calls the log has dropped for want of room since the last clear.
    """

def clear_dispatch_logs() -> None:
    """Forgets what was logged."""

def save_trace(path: str | os.PathLike[str]) -> None:
    """Writes the log as a trace that Perfetto and chrome://tracing open."""

def backward(op: object, arguments: tuple[Any, ...], grad_output: object, keywords: dict[str, Any]) -> tuple[Any, ...]: ...

def explain_call(op: object | None, arguments: tuple, keywords: dict) -> Decision: ...

def problem_of_call(op: object | None, arguments: tuple, keywords: dict) -> Problem:
    """The problem that a call with these arguments poses."""

def op_signatures() -> list:
    """Name, typed parameters and op of every function of `ops`."""

def op_rows() -> list[dict[str, Any]]:
    """
    All that is known of each op: names, inputs, attributes, sizes, documentation.
    """

class Dispatcher:
    """From a call to a kernel that runs."""

    @staticmethod
    def instance() -> Dispatcher: ...

    def get_policy(self) -> KernelPolicy:
        """Of threads and tasks that are in no scope."""

    def set_policy(self, policy: KernelPolicy) -> None: ...

class QuarantinedPlan:
    """A plan that failed and is not tried again on its problem."""

    @property
    def problem(self) -> Problem:
        """What it failed on."""

    @property
    def kernel(self) -> str:
        """Whose plan it was."""

    @property
    def reason(self) -> str:
        """What was reported."""

    def __repr__(self) -> str: ...

def quarantined() -> list[QuarantinedPlan]:
    """Plans that failed and are not tried again."""

def clear_quarantine() -> None:
    """Tries them again."""

def get_available_kernels(op_name: str, device: object = None) -> list[str]:
    """
    The kernels of an op in the order they are preferred: those of a device, or of all that are here.
    """

def explain_problem(problem: object) -> Decision: ...

def devices() -> list[Device]:
    """Every device that can be used, the CPU first."""

def device_profile(device: object = "cpu") -> DeviceProfile:
    """All that rules and kernels may ask of a device."""

class ExecutionPolicy:
    """
    How an engine runs a whole model: where, how exact, on which shapes, how long.
    """

    def __init__(self, target: str = 'cuda', precision: object = 'fp32', static_shape: bool = False, fixed_shapes: Sequence[Sequence[int]] | None = None, allow_fallback: str | None = None, optimize_level: int = 2, cache_compiled: bool = True, cache_dir: str | os.PathLike[str] = '', compile_timeout_ms: int = 300000, execution_timeout_ms: int = 30000) -> None: ...

    @property
    def target(self) -> str:
        """Where to run: cuda, npu, cpu ..."""

    @target.setter
    def target(self, value: object) -> None: ...

    @property
    def precision(self) -> str:
        """fp32, fp16, bf16 or int8."""

    @precision.setter
    def precision(self, value: object) -> None: ...

    @property
    def static_shape(self) -> bool:
        """Whether shapes are those of fixed_shapes, always."""

    @static_shape.setter
    def static_shape(self, value: object) -> None: ...

    @property
    def fixed_shapes(self) -> list[list[int]] | None:
        """The shape of each input."""

    @fixed_shapes.setter
    def fixed_shapes(self, value: object) -> None: ...

    @property
    def allow_fallback(self) -> str | None:
        """Where to run instead; None: nowhere."""

    @allow_fallback.setter
    def allow_fallback(self, value: object) -> None: ...

    @property
    def optimize_level(self) -> int:
        """0 none to 3 aggressive."""

    @optimize_level.setter
    def optimize_level(self, value: object) -> None: ...

    @property
    def cache_compiled(self) -> bool:
        """Whether compiled models are kept."""

    @cache_compiled.setter
    def cache_compiled(self, value: object) -> None: ...

    @property
    def cache_dir(self) -> str:
        """Where they are kept; empty: the usual place."""

    @cache_dir.setter
    def cache_dir(self, value: object) -> None: ...

    @property
    def compile_timeout_ms(self) -> int:
        """How long compiling may take."""

    @compile_timeout_ms.setter
    def compile_timeout_ms(self, value: object) -> None: ...

    @property
    def execution_timeout_ms(self) -> int:
        """How long one run may take."""

    @execution_timeout_ms.setter
    def execution_timeout_ms(self, value: object) -> None: ...

    def with_precision(self, precision: object) -> ExecutionPolicy:
        """This policy at another precision, all else kept."""

    def with_fallback(self, device: str | None) -> ExecutionPolicy:
        """This policy with another fallback, or none; all else kept."""

    def check(self) -> None:
        """Raises if it says something that cannot be."""

    def to_json(self) -> str:
        """The text that save writes."""

    @staticmethod
    def from_json(json: str) -> ExecutionPolicy:
        """Reads what to_json wrote."""

    def to_dict(self) -> dict[str, object]:
        """As the file has it."""

    @staticmethod
    def load(path: str | os.PathLike[str]) -> ExecutionPolicy:
        """Reads a file. What is wrong in it is an error with line and column."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file: the old one or the new one is there, never half."""

    def __copy__(self) -> ExecutionPolicy: ...

    def __deepcopy__(self, memo: object | None) -> ExecutionPolicy: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def __repr__(self) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    __hash__: None = None  # type: ignore[assignment]

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

def findings_of_execution_policy(policy: ExecutionPolicy) -> list[str]: ...

class ScopeStack:
    pass

class ScopeLayer:
    def enter(self) -> None: ...

    def leave(self) -> None: ...

def policy_layer(policy: KernelPolicy) -> ScopeLayer: ...

def autocast_layer(dtype: object | None, enabled: bool, registry: AmpRegistry | None) -> ScopeLayer: ...

def lock_layer(lock: KernelLock | None, mode: str) -> ScopeLayer: ...

def set_process_lock(lock: KernelLock | None, mode: str) -> None: ...

def captured_layer() -> ScopeLayer: ...

class TensorSpec:
    """What a choice may know of one tensor."""

    @property
    def dtype(self) -> str:
        """Its short name: "f32"."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def strides(self) -> tuple[int, ...]:
        """In elements."""

    @property
    def alignment(self) -> int:
        """In bytes."""

    @property
    def contiguous(self) -> bool: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class Limits:
    """Bounds that the caller's policy sets; None where there is none."""

    @property
    def workspace_bytes(self) -> int | None: ...

    @property
    def deterministic(self) -> bool: ...

    @property
    def threads(self) -> int | None: ...

class Problem:
    """Everything a choice may depend on, and nothing else."""

    def __init__(self, text: str | Problem, device: object = None) -> None:
        """Reads a text such as "matmul(f32[64,64], f32[64,64]) @cpu:0"."""

    @property
    def op(self) -> str: ...

    @property
    def direction(self) -> str:
        """"forward" or "backward"."""

    @property
    def device(self) -> Device: ...

    @property
    def inputs(self) -> list[TensorSpec]: ...

    @property
    def outputs(self) -> list[TensorSpec]: ...

    @property
    def attributes(self) -> dict[str, object]:
        """Every attribute of the op, defaults filled in."""

    @property
    def limits(self) -> Limits: ...

    @property
    def dtype(self) -> str:
        """What its floating inputs have in common without loss."""

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class DeviceProfile:
    """
    All that rules and kernels may ask of a device. A device that is not here is a profile somebody wrote.
    """

    def __init__(self, **fields: object) -> None:
        """Any of the fields by name; the others keep theirs."""

    def has_cpu_feature(self, feature: str) -> bool:
        """Whether the processor has it: "avx2", "neon"."""

    def has_extension(self, extension: str) -> bool:
        """Whether the driver has it: "cl_khr_fp16"."""

    def to_json(self) -> str:
        """Every field, as docs/interfaces.md lists them."""

    @staticmethod
    def from_json(json: str) -> DeviceProfile: ...

    @staticmethod
    def load(path: str | os.PathLike[str]) -> DeviceProfile: ...

    def save(self, path: str | os.PathLike[str]) -> None: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def __repr__(self) -> str: ...

    @property
    def type(self) -> str:
        """The device's kind: cpu, cuda, opencl."""

    @property
    def vendor(self) -> str:
        """In lower case: "intel", "nvidia", "arm"."""

    @property
    def name(self) -> str:
        """As the driver prints it."""

    @property
    def driver_version(self) -> str: ...

    @property
    def library_versions(self) -> dict[str, str]: ...

    @property
    def compute_capability_major(self) -> int:
        """NVIDIA only."""

    @property
    def compute_capability_minor(self) -> int: ...

    @property
    def compute_units(self) -> int:
        """Cores, multiprocessors."""

    @property
    def integrated(self) -> bool:
        """Whether it shares memory with the host."""

    @property
    def global_memory_bytes(self) -> int: ...

    @property
    def local_memory_bytes(self) -> int:
        """Per work-group or block."""

    @property
    def l1_bytes(self) -> int:
        """Of data, per core."""

    @property
    def l2_bytes(self) -> int: ...

    @property
    def l3_bytes(self) -> int: ...

    @property
    def cache_line_bytes(self) -> int: ...

    @property
    def max_work_group_size(self) -> int: ...

    @property
    def max_work_item_sizes(self) -> list[int]: ...

    @property
    def sub_group_size(self) -> int:
        """Warp, wavefront; 0: unknown."""

    @property
    def fp16(self) -> bool:
        """Whether it computes in this type, not only stores it."""

    @property
    def bf16(self) -> bool: ...

    @property
    def fp64(self) -> bool: ...

    @property
    def int8(self) -> bool: ...

    @property
    def fp8(self) -> bool: ...

    @property
    def tensor_cores(self) -> bool:
        """Matrix units of any vendor."""

    @property
    def cpu_features(self) -> list[str]: ...

    @property
    def extensions(self) -> list[str]: ...

def register_kernel(name: object | None, op: object | None, run: object | None, supports: object | None, device: object | None, workspace_bytes: object | None, deterministic: object | None, directions: object | None, version: object | None) -> None: ...

def unregister_kernel(name: object | None, op: object | None, device: object | None) -> bool: ...

def load_plugin(path: str | os.PathLike[str]) -> str:
    """
    Opens a shared library with a backend in it and returns the backend's name.

    It is trusted code that runs in this process.
    """

class AmpConfig:
    """What lower and higher mean in a precision rule."""

    def __init__(self, enabled: bool = True, target_precision: object = 'bf16', higher_precision: object = 'f32') -> None: ...

    @property
    def enabled(self) -> bool:
        """False: rules change nothing at all."""

    @property
    def target_precision(self) -> str: ...

    @property
    def higher_precision(self) -> str: ...

    @staticmethod
    def create_default() -> AmpConfig: ...

    @staticmethod
    def create_fp16() -> AmpConfig: ...

    @staticmethod
    def create_bf16() -> AmpConfig: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple: ...

    def __repr__(self) -> str: ...

class OpPrecision(enum.Enum):
    """What a rule asks of one direction of an op."""

    higher = 0

    lower = 1

    keep = 2

    custom = 3

class OpPrecisionRule:
    """The precision of one op, forward and backward."""

    def __init__(self, op: str, forward_precision: OpPrecision | str, backward_precision: OpPrecision | str = 'keep', custom_forward_dtype: object = None, custom_backward_dtype: object = None, priority: int = 0) -> None:
        """Backward "keep" is as forward; "custom" needs its dtype."""

    @property
    def op(self) -> str: ...

    @property
    def forward_precision(self) -> OpPrecision: ...

    @property
    def backward_precision(self) -> OpPrecision: ...

    @property
    def custom_forward_dtype(self) -> str | None: ...

    @property
    def custom_backward_dtype(self) -> str | None: ...

    @property
    def priority(self) -> int: ...

    def get_forward_dtype(self, config: AmpConfig, input_dtype: object) -> str: ...

    def get_backward_dtype(self, config: AmpConfig, input_dtype: object) -> str: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class AmpRegistry:
    """
    Which op runs in which precision, forward and backward. Starts with the default rules.
    """

    def __init__(self, config: AmpConfig | None = None) -> None: ...

    @property
    def config(self) -> AmpConfig: ...

    def register_whitelist(self, op: str, priority: int = 0) -> None:
        """Lower precision, backward as forward."""

    def register_blacklist(self, op: str, priority: int = 0) -> None:
        """Higher precision, backward as forward."""

    def register_custom_op(self, op: str, forward: object, backward: object, priority: int = 0) -> None:
        """These dtypes, whatever the config says."""

    def register_rule(self, rule: OpPrecisionRule) -> bool:
        """False where a rule of higher priority stays."""

    def unregister(self, op: str) -> bool:
        """
        Removes the user's rule, which brings the default back; False if there is none.
        """

    def clear(self) -> None:
        """Removes all rules, the defaults too: then each op's category decides."""

    def get_rule(self, op: str) -> OpPrecisionRule | None:
        """
        A user's rule or the default; None where only the op's category decides.
        """

    def rule_in_force(self, op: str) -> OpPrecisionRule: ...

    def source(self, op: str) -> str:
        """Who the rule in force comes from: "user", "default" or "category"."""

    def get_forward_dtype(self, op: str, input_dtype: object) -> str: ...

    def get_backward_dtype(self, op: str, input_dtype: object) -> str: ...

    def is_whitelisted(self, op: str) -> bool:
        """Lower precision by a rule."""

    def is_blacklisted(self, op: str) -> bool:
        """Higher precision by a rule."""

    def get_all_rules(self) -> dict[str, OpPrecisionRule]: ...

class DefaultAmpRules:
    """The rules that a registry starts with."""

    @staticmethod
    def default_whitelist() -> list[str]:
        """Ops that are safe in low precision."""

    @staticmethod
    def default_blacklist() -> list[str]:
        """Ops that need the higher one."""

    @staticmethod
    def apply_default_rules(registry: AmpRegistry) -> None:
        """
        Puts the defaults in their tier below every rule of the user's, which stay.
        """

def amp() -> AmpRegistry:
    """The precision rules that autocast takes where none are named."""

class LossScaler:
    """The scale of a loss from step to step: a number and its rule."""

    def __init__(self, *, initial_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, min_scale: float = 1.0, max_scale: float = 16777216.0, dynamic: bool = True) -> None: ...

    @property
    def scale(self) -> float: ...

    @property
    def inverse_scale(self) -> float: ...

    def update(self, found_inf: bool) -> bool:
        """Once after each step; returns whether the scale changed."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: dict[str, Any]) -> None: ...

class GradScaler:
    """
    Takes gradients in 16 bits through a training step.

    Each step goes scale, backward, unscale, step, update; any other order is an error that says what to call.
    The fields are those of LossScaler.
    """

    def __init__(self, *, initial_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5, growth_interval: int = 2000, min_scale: float = 1.0, max_scale: float = 16777216.0, dynamic: bool = True) -> None: ...

    @property
    def factor(self) -> float:
        """What the loss is multiplied by in this step."""

    @property
    def found_inf(self) -> bool:
        """What unscale found in this step."""

    def scale(self, loss: Any, out: Any = None) -> Any:
        """
        The loss times factor: a number, an array like the loss, or `out`. Hold it in f32 or bf16.
        """

    def unscale(self, gradients: Sequence[Any], outputs: Sequence[Any] | None = None) -> bool:
        """
        Divides the gradients by factor; returns whether a value was not finite.

        f32 gradients are changed in place where no outputs are given; others need outputs in f32 or f64.
        """

    def step(self, apply: Callable[[], object]) -> bool:
        """
        Calls `apply`, which changes the parameters, unless the gradients overflowed; returns whether it did.
        """

    def update(self) -> None:
        """Ends the step and brings the scale up to date."""

    def abandon_step(self) -> None:
        """Forgets the step that was begun: nothing is counted, the scale stays."""

    def state_dict(self) -> dict[str, Any]:
        """All that a training run needs to go on."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """
        Takes up what state_dict returned; also abandons the step that was begun.
        """

class KernelDtype(enum.Enum):
    """The precision of a kernel, as coarse as mixed precision speaks of it."""

    float32 = 0

    float16 = 1

    bfloat16 = 2

    mixed = 3

    auto_select = 4

class KernelCapability:
    """What a device can do for one op in one precision."""

    def __init__(self, dtype: KernelDtype | object = 'f32', is_available: bool = True, supports_tensor_cores: bool = False, performance_factor: float = 1.0, memory_efficiency: float = 1.0) -> None: ...

    @property
    def dtype(self) -> KernelDtype: ...

    @property
    def is_available(self) -> bool: ...

    @property
    def supports_tensor_cores(self) -> bool: ...

    @property
    def performance_factor(self) -> float:
        """Against f32, higher is faster."""

    @property
    def memory_efficiency(self) -> float:
        """Against f32, higher needs less."""

    @staticmethod
    def create_float32(supports_tensor_cores: bool = False) -> KernelCapability: ...

    @staticmethod
    def create_float16(supports_tensor_cores: bool = True) -> KernelCapability: ...

    @staticmethod
    def create_bfloat16(supports_tensor_cores: bool = True) -> KernelCapability: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class KernelPerformanceStats:
    """
    How long an op took in one precision, in milliseconds, over all its problems.
    """

    def __init__(self, operation_name: str, dtype: KernelDtype | object, average_execution_time: float, min_execution_time: float, max_execution_time: float, execution_count: int) -> None: ...

    @property
    def operation_name(self) -> str: ...

    @property
    def dtype(self) -> KernelDtype: ...

    @property
    def average_execution_time(self) -> float: ...

    @property
    def min_execution_time(self) -> float: ...

    @property
    def max_execution_time(self) -> float: ...

    @property
    def execution_count(self) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def to_string(self) -> str:
        """One line, as str() gives it."""

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class KernelSelector:
    """
    Chooses kernels for one device: its capabilities, the times they took and the user's rules. There is one for each device.
    """

    def __init__(self, device: object | None = 'cpu') -> None: ...

    @property
    def device(self) -> Device: ...

    def register_rule(self, op: str, condition: Callable[[Problem, DeviceProfile], object], kernel: str, priority: int = 0, name: str = '') -> int:
        """
        For this op, where the condition holds, use that kernel. Returns the rule's id.
        """

    def unregister_rule(self, rule: int) -> bool:
        """By its id; False if there is none."""

    def rules(self, op: str) -> list[dict[str, object]]:
        """The user's rules of an op in the order they are tried."""

    def select(self, problem: Problem | str, policy: object = None, profile: DeviceProfile | None = None) -> Decision:
        """
        Chooses among the registered kernels, under the policy in force where none is given. With a profile: as on the device that it describes, which need not be here.
        """

    def __repr__(self) -> str: ...

    def get_kernel_dtype(self, what: object, input_dtypes: Iterable[object] | None = None) -> KernelDtype:
        """
        Of one tensor, of a list of them, or of an op with the dtypes of its inputs.
        """

    def is_kernel_available(self, op: str, dtype: KernelDtype | object) -> bool:
        """Whether this device can run the op in this precision."""

    def register_kernel_capability(self, op: str, capability: KernelCapability) -> None:
        """Replaces what was registered for the op and the capability's dtype."""

    def find_kernel_capability(self, op: str, dtype: KernelDtype | object) -> KernelCapability | None: ...

    def select_best_kernel(self, op: str, input_dtypes: Iterable[object], preferred: KernelDtype | object = None) -> KernelDtype:
        """
        The preferred dtype if it is available, else that of the first floating input that is, else float32.
        """

    def update_performance_stats(self, op: str, dtype: KernelDtype | object, execution_time_ms: float) -> None: ...

    def get_performance_stats(self, op: str, dtype: KernelDtype | object, measured: bool = True) -> KernelPerformanceStats | None:
        """
        The times given here and, with `measured`, those of logged calls; None if there are none.
        """

class KernelRegistry:
    """Which kernels exist for which op, and a selector per device."""

    @staticmethod
    def instance() -> KernelRegistry: ...

    def get_registered_ops(self) -> list[str]:
        """Ops that have at least one kernel here."""

    def get_kernel_names(self, op_name: str) -> list[str]:
        """The kernels of an op, over all devices."""

    def get_or_create_selector(self, device: object = 'cpu') -> KernelSelector:
        """
        The selector of a device, made with the device's default capabilities on first use.
        """

    def register_default_capabilities(self, device: object, selector: KernelSelector) -> None:
        """
        Puts what the device's profile says it computes in back into a selector of that device.
        """

    def get_all_selectors(self) -> dict[Device, KernelSelector]:
        """Those that were made so far."""

    def clear(self) -> None:
        """
        Drops all selectors, with their rules and capabilities; who holds one keeps it.
        """

def get_registered_ops() -> list[str]:
    """Ops that have at least one kernel here."""

def builtin_rules(op: str | None = None) -> list[dict[str, str]]:
    """
    The rules that the library brings, in the order they are tried: of an op, or all.
    """

def register_op(name: object | None, infer: object | None, inputs: object | None, optional_inputs: object | None, attributes: object | None, category: object | None, aliases: object | None) -> object: ...

def op_name(name: object) -> str | None: ...

class TuneProgress:
    """How far a tuning run is."""

    @property
    def problem(self) -> str: ...

    @property
    def problem_index(self) -> int: ...

    @property
    def problem_count(self) -> int: ...

    @property
    def candidates_left(self) -> int:
        """Still in the race."""

    @property
    def spent_s(self) -> float: ...

    @property
    def remaining_s(self) -> float:
        """At most, by the budgets."""

class TunedCandidate:
    """One kernel in the race."""

    @property
    def kernel(self) -> str: ...

    @property
    def plan(self) -> str: ...

    @property
    def outcome(self) -> str:
        """"won", "lost", "refused" or "quarantined"."""

    @property
    def reason(self) -> str: ...

    @property
    def time_us(self) -> float | None: ...

    @property
    def noise_us(self) -> float | None: ...

    @property
    def runs(self) -> int: ...

    @property
    def workspace_bytes(self) -> int | None: ...

    @property
    def error(self) -> float | None:
        """Relative, against the reference."""

    @property
    def tolerance(self) -> float | None: ...

    def __repr__(self) -> str: ...

class TuneResult:
    """What a race on one problem ended with."""

    @property
    def problem(self) -> Problem: ...

    @property
    def incumbent(self) -> str | None:
        """What would be chosen without measuring."""

    @property
    def chosen(self) -> str | None:
        """None: it was cancelled, or nothing could run."""

    @property
    def plan(self) -> str:
        """The plan it was chosen with, by its token."""

    @property
    def because(self) -> str: ...

    @property
    def gain(self) -> float:
        """How many times as fast as the incumbent."""

    @property
    def cut_short(self) -> bool:
        """A budget ended the race before it was sure."""

    @property
    def cut_by(self) -> str:
        """Which budget did: problem_budget_s or total_budget_s; else empty."""

    @property
    def cancelled(self) -> bool: ...

    @property
    def spent_s(self) -> float: ...

    @property
    def measuring_s(self) -> float: ...

    @property
    def discarded(self) -> int:
        """Readings of the clock that could not be right."""

    @property
    def candidates(self) -> list[TunedCandidate]: ...

    @property
    def not_stored(self) -> str | None:
        """Why what was found could not be kept."""

    def __repr__(self) -> str: ...

class TuneOptions:
    def __init__(self, budget_s: object | None, total_budget_s: object | None, min_gain: object | None, probe_timeout_s: object | None, isolate: object | None, seed: object | None, range_points: object | None = None) -> None: ...

def tune(problems: Sequence[Problem], ranges: Sequence[ProblemRange], options: TuneOptions, progress: object | None, finished: object) -> tuple[list[TuneResult], list[RangeResult]]: ...

def enable_tuning(arg: TuneOptions, /) -> None: ...

def disable_tuning() -> None:
    """Measures nothing more on the way; what was found stays."""

class ProblemRange:
    """Problems that are alike but for some extents."""

    def __init__(self, text: str | ProblemRange, device: object = None) -> None:
        """
        Reads a text such as "matmul(f32[m,768], f32[768,768]) where m=1..512".
        """

    @property
    def names(self) -> dict[str, tuple[int, int]]:
        """The least and the largest size of each name."""

    def at(self, **sizes: int) -> Problem:
        """The problem of these sizes."""

    def __len__(self) -> int: ...

    def __contains__(self, problem: Problem) -> bool: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __reduce__(self) -> tuple: ...

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

def record_ranges(arg0: KernelLock, arg1: Sequence[ProblemRange], /) -> None: ...

def has_ranges(arg: str, /) -> bool: ...

class TunedPart:
    """A part of a range, and the kernel that runs all of it."""

    @property
    def range(self) -> ProblemRange: ...

    @property
    def kernel(self) -> str: ...

    def __repr__(self) -> str: ...

class RangeResult:
    """What tuning a range ended with."""

    @property
    def range(self) -> ProblemRange: ...

    @property
    def parts(self) -> list[TunedPart]: ...

    @property
    def measured(self) -> list[TuneResult]:
        """The races, in the order they were held."""

    @property
    def problems(self) -> int:
        """How many the range holds."""

    @property
    def covered(self) -> int:
        """How many of them the parts hold."""

    @property
    def guessed(self) -> int:
        """
        How many have the kernel of the nearest one measured, as points or time ran out.
        """

    @property
    def named_by_policy(self) -> int:
        """How many the policy names a kernel for; they were left alone."""

    @property
    def named_because(self) -> str:
        """How it does that: "the policy prefers openblas"."""

    @property
    def complete(self) -> bool:
        """False where it was stopped or out of time."""

    @property
    def cut_short(self) -> bool:
        """The total budget ended it before it was sure of all."""

    @property
    def cut_by(self) -> str:
        """Which budget did: total_budget_s; else empty."""

    @property
    def spent_s(self) -> float: ...

    def rules(self) -> list[dict[str, object]]:
        """A rule of a policy for each part."""

    def policy(self, base: object = None) -> KernelPolicy:
        """
        A policy with these rules before those of `base`; ranges of `base` that they hold are replaced.
        """

    def __str__(self) -> str: ...

    def __repr__(self) -> str: ...

class MeasurementStore:
    """
    Where measurements are kept: a file that many threads and processes may use at once.
    """

    @property
    def path(self) -> str: ...

    @property
    def read_only(self) -> bool: ...

    def read(self, op: str | None = None, kernel: str | None = None, environment_id: str | None = None, older_than: float | None = None) -> dict[str, object]:
        """
        What it holds, all of it or what every filter means; docs/interfaces.md lists the keys.
        """

    def export_json(self, path: str | os.PathLike[str] | None = None, op: str | None = None, kernel: str | None = None, environment_id: str | None = None, older_than: float | None = None) -> str:
        """The same as a text, written to a file where one is named."""

    def merge(self, source: MeasurementStore | dict[str, object]) -> int:
        """
        Takes in what another store holds; the later measurement stays. Returns how many entries changed.
        """

    def import_json(self, path: str | os.PathLike[str]) -> int:
        """
        Merges a file that export_json wrote. Returns how many entries changed.
        """

    def prune(self, op: str | None = None, kernel: str | None = None, environment_id: str | None = None, older_than: float | None = None) -> int:
        """
        Removes what every filter means, `older_than` in seconds since 1970. Returns how many entries went.
        """

    def check(self) -> None:
        """Reads all there is; damage is a CorruptDataError that says where."""

    def __repr__(self) -> str: ...

def open_store(path: str | os.PathLike[str] | None = None, read_only: bool = False) -> MeasurementStore:
    """
    Opens a store, or makes it; without a path that of default_store_path().
    """

def default_store_path() -> str:
    """
    $XPURUNTIME_STORE, else xpuruntime/store.sqlite in the user's cache folder.
    """

def use_store(store: MeasurementStore | str | os.PathLike[str] | None) -> None:
    """
    Takes measured choices from this store from now on; None: from the times of logged calls.
    """

def store_in_use() -> MeasurementStore | None:
    """The store in use; None where there is none yet."""

def use_writable_store() -> None: ...

def refresh_measurements() -> None:
    """
    Policies set and scopes entered from now on see what is in the store now.
    """

class LockMode(enum.Enum):
    """How a lock is obeyed."""

    strict = 0
    """An entry that was made in another environment is an error."""

    revalidate = 1
    """
    One made on the same device with other software is checked first, and used if it still holds.
    """

class LockEntry:
    """One decision on record."""

    @property
    def problem(self) -> str:
        """Its text as the kernel gets it."""

    @property
    def kernel(self) -> str: ...

    @property
    def kernel_version(self) -> str | None:
        """
        Of a kernel that somebody brought: its version, or "unversioned". None for kernels of xpuruntime.
        """

    @property
    def plan(self) -> str: ...

    @property
    def workspace_bytes(self) -> int: ...

    @property
    def environment(self) -> str: ...

    @property
    def outputs(self) -> str | None:
        """SHA-256 of what came out, where it was recorded."""

    @property
    def seed(self) -> int: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __hash__(self) -> int: ...

    def __repr__(self) -> str: ...

class LockDifference:
    """One thing that two locks do not have in common."""

    @property
    def problem(self) -> str: ...

    @property
    def field(self) -> str:
        """"entry": one of them lacks it."""

    @property
    def before(self) -> str: ...

    @property
    def after(self) -> str: ...

    def __repr__(self) -> str: ...

class ReplayResult:
    """One entry of a lock, tried here."""

    @property
    def problem(self) -> str: ...

    @property
    def kernel(self) -> str: ...

    @property
    def outcome(self) -> str:
        """"same", "revalidated" or "failed"."""

    @property
    def reason(self) -> str: ...

    @property
    def outputs_compared(self) -> bool: ...

class ReplayReport:
    """What verify_lock found."""

    @property
    def results(self) -> list[ReplayResult]:
        """In the order of the lock."""

    @property
    def ran(self) -> bool:
        """False: an entry cannot be replayed here, so nothing ran."""

    @property
    def fine(self) -> bool:
        """Whether no entry failed."""

class KernelLock:
    """Decisions to be made again exactly; a file such as kernels.lock."""

    def __init__(self) -> None: ...

    @property
    def entries(self) -> list[LockEntry]:
        """By problem, in the order of the file."""

    def add(self, decision: Decision) -> LockEntry:
        """
        Records a decision; another choice for a problem that is there is an error.
        """

    def find(self, problem: Problem | str) -> LockEntry | None: ...

    def diff(self, after: KernelLock) -> list[LockDifference]:
        """What differs in the other lock; empty: nothing."""

    def to_json(self) -> str: ...

    @staticmethod
    def from_json(json: str) -> KernelLock: ...

    @staticmethod
    def load(path: str | os.PathLike[str]) -> KernelLock: ...

    def save(self, path: str | os.PathLike[str]) -> None: ...

    def __len__(self) -> int: ...

    def __contains__(self, problem: Problem | str, /) -> bool: ...

    def __eq__(self, other: object, /) -> bool: ...

    def __getstate__(self) -> str: ...

    def __setstate__(self, arg: str, /) -> None: ...

    def __repr__(self) -> str: ...

    __hash__: None = None  # type: ignore[assignment]

def record_problems(problems: Sequence[Problem], seed: object | None) -> KernelLock: ...

def record_log(log: Sequence[DispatchLog], seed: object | None) -> KernelLock: ...

def verify_lock(lock: KernelLock, mode: LockMode | str = 'strict') -> ReplayReport:
    """
    Tries every entry of a lock here; where all can be had, those with recorded outputs run and are compared.
    """

def refreshed(lock: KernelLock, report: ReplayReport) -> KernelLock:
    """
    The lock with the environment of this machine for those entries that were revalidated.
    """

def report_json(problems: Sequence[Problem], ranges: Sequence[ProblemRange], lock: object | None, against: object | None, store: object | None, title: object | None) -> str: ...

def save_report(path: object | None, json: str) -> None: ...

__version__: str
