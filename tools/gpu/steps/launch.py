"""A bare kernel launch: the driver's time for an empty kernel is a lower bound for any call."""

import ctypes

PTX = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry nothing() { ret; }
"""


class EmptyKernel:
    """A callable that launches an empty kernel on the default stream.

    The call goes through ctypes, which takes some of the time by itself.
    """

    def __init__(self, number=0):
        self._driver = driver = ctypes.CDLL("libcuda.so.1")
        device, self._context = ctypes.c_int(), ctypes.c_void_p()
        module, self._function = ctypes.c_void_p(), ctypes.c_void_p()
        self._check(driver.cuInit(0))
        self._check(driver.cuDeviceGet(ctypes.byref(device), number))
        self._check(driver.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), device))
        self._check(driver.cuCtxSetCurrent(self._context))
        self._check(driver.cuModuleLoadData(ctypes.byref(module), PTX))
        self._check(driver.cuModuleGetFunction(ctypes.byref(self._function), module, b"nothing"))
        self._launch = driver.cuLaunchKernel
        none = ctypes.c_void_p()
        self._arguments = (self._function, *map(ctypes.c_uint, (1, 1, 1, 1, 1, 1, 0)), none, none)
        self._arguments += (none,)

    def __call__(self):
        return self._launch(*self._arguments)

    def synchronize(self):
        self._check(self._driver.cuCtxSynchronize())

    @staticmethod
    def _check(status):
        if status:
            raise RuntimeError(f"the driver returns {status}")
