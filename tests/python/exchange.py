"""A small array package that speaks DLPack's table of C functions, written with ctypes: the standard's layout once more,
independent of the code under test. PyTorch has the same since 2.10."""

import ctypes
import weakref

import numpy


class View(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Managed(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("view", View),
    ]


ALLOCATE = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(View), ctypes.POINTER(ctypes.POINTER(Managed)), ctypes.c_void_p, ctypes.c_void_p)
FROM_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(ctypes.POINTER(Managed)))
TO_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.POINTER(Managed), ctypes.POINTER(ctypes.c_void_p))
VIEW_OBJECT = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(View))
DELETER = ctypes.PYFUNCTYPE(None, ctypes.POINTER(Managed))
WORK_STREAM = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int32, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))


class Table(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("older", ctypes.c_void_p),
        ("allocate", ALLOCATE),
        ("from_object", FROM_OBJECT),
        ("to_object", TO_OBJECT),
        ("view_object", VIEW_OBJECT),
        ("work_stream", WORK_STREAM),
    ]


class Exchanged:
    """A NumPy float32 array that hides it."""

    calls: list[str] = []

    def __init__(self, array):
        self.array = array
        self.shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.strides = (ctypes.c_int64 * array.ndim)(*(s // array.itemsize for s in array.strides))


_made = {}


def _fill(view, holder):
    view.data = holder.array.ctypes.data
    view.device_type, view.device_id, view.ndim = 1, 0, holder.array.ndim
    view.code, view.bits, view.lanes = 2, 32, 1
    view.shape, view.strides, view.byte_offset = holder.shape, holder.strides, 0


@ALLOCATE
def _allocate(like, out, _context, _set_error):
    Exchanged.calls.append("allocate")
    holder = Exchanged(numpy.full([like[0].shape[i] for i in range(like[0].ndim)], numpy.nan, numpy.float32))
    managed = Managed(major=1, minor=3)
    _fill(managed.view, holder)
    _made[ctypes.addressof(managed)] = (managed, holder)
    out[0] = ctypes.pointer(managed)
    return 0


@FROM_OBJECT
def _from_object(_object, _out):
    return -1


@TO_OBJECT
def _to_object(managed, out):
    Exchanged.calls.append("to_object")
    _, holder = _made.pop(ctypes.addressof(managed[0]), (None, None))
    if holder is None:  # of another maker
        view = managed[0].view
        steps = [view.strides[i] for i in range(view.ndim)]
        extents = [view.shape[i] for i in range(view.ndim)]
        span = 1 + sum(step * (extent - 1) for step, extent in zip(steps, extents))
        memory = numpy.ctypeslib.as_array((ctypes.c_float * span).from_address(view.data + view.byte_offset))
        holder = Exchanged(numpy.lib.stride_tricks.as_strided(memory, extents, [4 * step for step in steps]))
        weakref.finalize(holder, DELETER(managed[0].deleter), ctypes.pointer(managed[0]))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(holder))
    out[0] = id(holder)
    return 0


@VIEW_OBJECT
def _view_object(holder, out):
    Exchanged.calls.append("view")
    _fill(out[0], holder)
    return 0


@WORK_STREAM
def _work_stream(_type, _index, out):
    out[0] = None
    return 0


_table = Table(1, 3, None, _allocate, _from_object, _to_object, _view_object, _work_stream)
_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
_name = ctypes.create_string_buffer(b"dlpack_exchange_api")  # a capsule does not copy it
Exchanged.__dlpack_c_exchange_api__ = _new_capsule(ctypes.addressof(_table), ctypes.addressof(_name), None)
