"""OpenCL C and CUDA C."""

from __future__ import annotations

from osprey_py.backends.c.dialect import Dialect

_OPENCL_HEAD = """\
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#pragma OPENCL FP_CONTRACT OFF
typedef long i64;
typedef ulong u64;
typedef uint u32;
typedef ushort u16;
typedef uchar u8;
typedef double f64;
static f64 float_of(i64 a) { return as_double(a); }
static i64 bits_of(f64 a) { return as_long(a); }
static i64 mulhigh(i64 a, i64 b) { return (i64)mul_hi((u64)a, (u64)b); }
static i64 signed_high(i64 a, i64 b) { return mul_hi(a, b); }
"""

OPENCL = Dialect(
    name="opencl",
    head=_OPENCL_HEAD,
    kernel="__kernel void",
    function="static",
    memory="__global",
    constant="__constant",
    local="__local",
    item="(i64)get_global_id(0)",
    local_item="(int)get_local_id({})",
    group="(i64)get_group_id({})",
    axes=("0", "1", "2"),
    barrier="barrier(CLK_LOCAL_MEM_FENCE);",
    group_size="__attribute__((reqd_work_group_size({}, {}, 1)))",
    arithmetic={
        "fadd": "({0} + {1})",
        "fsub": "({0} - {1})",
        "fmul": "({0} * {1})",
        "fdivi": "({0} / {1})",
        "sqrt": "sqrt({0})",
        "tofloat": "(f64){0}",
    },
)
"""Contraction is off for the whole text; binary64 division and sqrt are correctly rounded by OpenCL's own rules."""

_CUDA_HEAD = """\
typedef long long i64;
typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;
typedef double f64;
static __device__ __forceinline__ f64 float_of(i64 a) { return __longlong_as_double(a); }
static __device__ __forceinline__ i64 bits_of(f64 a) { return __double_as_longlong(a); }
static __device__ __forceinline__ i64 mulhigh(i64 a, i64 b) { return (i64)__umul64hi((u64)a, (u64)b); }
static __device__ __forceinline__ i64 signed_high(i64 a, i64 b) { return __mul64hi(a, b); }
"""

CUDA = Dialect(
    name="cuda",
    head=_CUDA_HEAD,
    kernel='extern "C" __global__ void',
    function="static __device__ __forceinline__",
    memory="",
    constant="__constant__",
    local="__shared__",
    item="(i64)blockIdx.x * blockDim.x + threadIdx.x",
    local_item="(int)threadIdx.{}",
    group="(i64)blockIdx.{}",
    axes=("x", "y", "z"),
    barrier="__syncthreads();",
    group_size="__launch_bounds__({0} * {1})",
    arithmetic={
        "fadd": "__dadd_rn({0}, {1})",
        "fsub": "__dsub_rn({0}, {1})",
        "fmul": "__dmul_rn({0}, {1})",
        "fdivi": "__ddiv_rn({0}, {1})",
        "sqrt": "__dsqrt_rn({0})",
        "tofloat": "__ll2double_rn({0})",
    },
)
"""The _rn operations never contract, whatever the options."""
