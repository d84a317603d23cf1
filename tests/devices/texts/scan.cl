
static i64 wadd(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
static i64 from_i64(i64 a) { return a; }
static bool addo(i64 a, i64 b) { i64 s = wadd(a, b); return ((a ^ s) & (b ^ s)) < 0; }
static i64 read_i64(__global const i64 *slot, i64 length, i64 at) {
    return (u64)at < (u64)length ? from_i64(slot[at]) : 0;
}

__kernel void launch(
    const i64 n,
    __global i64 *to,
    const i64 to_begin,
    __global int *flags,
    const i64 position,
    __global const i64 *from0,
    const i64 begin0,
    const i64 length0
) {
    __global i64 *output = to + to_begin;
    __global const i64 *slot0 = from0 + begin0;
    if ((i64)get_global_id(0) != 0) return;
    i64 total_0 = 0;
    for (i64 i = 0; i < n; ++i) {
        const i64 v_0 = read_i64(slot0, length0, i);
        if (addo(total_0, v_0)) { flags[position] = 1; }
        total_0 = wadd(total_0, v_0);
        output[i] = total_0;
    }
}
