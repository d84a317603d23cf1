
static i64 wadd(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
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
    const i64 length0,
    __global const f64 *from1,
    const i64 begin1,
    const i64 length1,
    const i64 u0,
    const i64 u1
) {
    __global f64 *output = to + to_begin;
    __global const f64 *slot0 = from0 + begin0;
    __global const f64 *slot1 = from1 + begin1;
    const i64 i = (i64)get_global_id(0);
    if (i >= n) return;
    const bool v_0 = u0 == 0;
    const bool v_1 = u0 == -1;
    const bool v_2 = v_0 || (v_1 && (i == ((i64)1 << 63)));
    const i64 v_3 = wmul(i / (v_2 ? 1 : u0), u1);
    const i64 v_4 = i % ((v_0 || v_1) ? 1 : u0);
    const bool v_5 = v_2 || v_0;
    f64 sum_0 = 0.0;
    bool fault_0 = false;
    const i64 count_0 = u1;
    for (i64 k_0 = 0; k_0 < count_0; ++k_0) {
        const f64 next_0 = sum_0 + (read_f64(slot0, length0, wadd(v_3, k_0)) * read_f64(slot1, length1, wadd(wmul(k_0, u0), v_4)));
        const bool next_1 = fault_0 || v_5;
        sum_0 = next_0;
        fault_0 = next_1;
    }
    output[i] = canonical(sum_0);
    if (fault_0) flags[position] = 1;
}
