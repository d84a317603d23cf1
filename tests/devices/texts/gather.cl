
static i64 wsub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
static i64 wmul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
static f64 canonical(f64 a) { return a != a ? float_of(0x7FF8000000000000) : a; }
static f64 from_f64(f64 a) { return a; }
static f64 read_f64(__global const f64 *slot, i64 length, i64 at) {
    return (u64)at < (u64)length ? from_f64(slot[at]) : 0;
}

__kernel void launch(
    const i64 n,
    __global f64 *to,
    const i64 to_begin,
    __global int *flags,
    const i64 position,
    __global const f64 *from0,
    const i64 begin0,
    const i64 length0
) {
    __global f64 *output = to + to_begin;
    __global const f64 *slot0 = from0 + begin0;
    const i64 i = (i64)get_global_id(0);
    if (i >= n) return;
    const i64 v_0 = wsub(wmul(i, 3), 10);
    output[i] = canonical((((u64)(v_0) < (u64)length0) ? read_f64(slot0, length0, v_0) : (-1.0)));
}
