"""A trainer that creates two tensors through the library's C interface: one of its job, and one that is kept.

python3 tensor_trainer.py LIBRARY: needs only the system's Python, on a host without other packages.
"""

from __future__ import annotations

import ctypes
import sys

_OPTIONS_BYTES = 4096  # longer than gw_client_options; zeros mean the launcher's values
_DIMS_MAX = 4
_FLOAT32, _STRIPED, _OF_JOB, _KEPT = 8, 3, 0, 1


class Spec(ctypes.Structure):
    """struct gw_tensor_spec."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_int),
        ("placement", ctypes.c_int),
        ("type", ctypes.c_uint32),
        ("ndim", ctypes.c_uint32),
        ("shape", ctypes.c_uint64 * _DIMS_MAX),
        ("initial", ctypes.c_int),
        ("low", ctypes.c_double),
        ("high", ctypes.c_double),
        ("seed", ctypes.c_uint64),
        ("copied", ctypes.c_void_p),
        ("lifetime", ctypes.c_int),
    ]


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.gw_last_error.restype = ctypes.c_char_p
    client, tensor = ctypes.c_void_p(), ctypes.c_void_p()

    def check(status: int) -> None:
        if status:
            sys.exit(library.gw_last_error().decode())

    check(library.gw_client_open(bytes(_OPTIONS_BYTES), ctypes.byref(client)))
    for name, lifetime in ((b"of-job", _OF_JOB), (b"kept", _KEPT)):
        spec = Spec(name=name, dtype=_FLOAT32, placement=_STRIPED, ndim=2, lifetime=lifetime)
        spec.shape[0], spec.shape[1] = 100, 4
        check(library.gw_tensor_create(client, ctypes.byref(spec), ctypes.byref(tensor)))
    library.gw_client_close(client)
    print("running", flush=True)  # tests wait for this line


main()
