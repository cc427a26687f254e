# SPDX-License-Identifier: Apache-2.0
"""Like reach.c, by ctypes: looks up the names given as arguments in the driver."""
import ctypes
import os
import sys


class DlInfo(ctypes.Structure):
    _fields_ = [("fname", ctypes.c_char_p), ("fbase", ctypes.c_void_p),
                ("sname", ctypes.c_char_p), ("saddr", ctypes.c_void_p)]


driver = ctypes.CDLL("libcuda.so.1")
dladdr = ctypes.CDLL(None).dladdr
dladdr.argtypes = [ctypes.c_void_p, ctypes.POINTER(DlInfo)]
for name in sys.argv[1:]:
    info = DlInfo()
    dladdr(ctypes.cast(getattr(driver, name), ctypes.c_void_p), ctypes.byref(info))
    print(name, os.path.basename(info.fname or b"-").decode(), (info.sname or b"-").decode())
