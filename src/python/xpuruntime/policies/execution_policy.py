"""The policy that says how an engine runs a whole model."""

from .._core import ExecutionPolicy as ExecutionPolicy

# The names, types and defaults of the constructor. With them it is a dataclass to `dataclasses.replace`, `asdict` and
# `fields`, which are not imported for that before somebody does.
_FIELDS = (
    ("target", str, "cuda"), ("precision", str, "fp32"), ("static_shape", bool, False), ("fixed_shapes", object, None),
    ("allow_fallback", object, None), ("optimize_level", int, 2), ("cache_compiled", bool, True), ("cache_dir", str, ""),
    ("compile_timeout_ms", int, 300000), ("execution_timeout_ms", int, 30000),
    ("engine", str, "auto"),
)


class _DataclassFields:
    """Makes the fields when they are first asked for."""

    def __get__(self, instance: object, owner: type[ExecutionPolicy]) -> object:
        import dataclasses

        made = dataclasses.make_dataclass(owner.__name__, [(name, kind, dataclasses.field(default=default))
                                                           for name, kind, default in _FIELDS])
        owner.__dataclass_fields__ = vars(made)["__dataclass_fields__"]
        return owner.__dataclass_fields__


ExecutionPolicy.__dataclass_fields__ = _DataclassFields()  # type: ignore[assignment]
