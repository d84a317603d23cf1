
static i64 wadd(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
static i64 wmul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
static bool addo(i64 a, i64 b) { i64 s = wadd(a, b); return ((a ^ s) & (b ^ s)) < 0; }
static bool mulo(i64 a, i64 b) { return signed_high(a, b) != (wmul(a, b) >> 63); }

__kernel void launch(
    const i64 n,
    __global i64 *to,
    const i64 to_begin,
    __global int *flags,
    const i64 position
) {
    __global i64 *output = to + to_begin;
    const i64 i = (i64)get_global_id(0);
    if (i >= n) return;
    i64 x_0 = wadd(i, 1);
    i64 steps_0 = 0;
    bool fault_0 = addo(i, 1);
    for (;;) {
        const i64 v_0 = x_0 % 2;
        const i64 v_1 = wmul(x_0, 3);
        if (!((!fault_0) && (1 < x_0))) break;
        const i64 next_0 = (v_0 == 0) ? (x_0 / 2) : wadd(v_1, 1);
        const i64 next_1 = wadd(steps_0, 1);
        const bool next_2 = fault_0 || (((v_0 != 0) && (mulo(x_0, 3) || addo(v_1, 1))) || addo(steps_0, 1));
        x_0 = next_0;
        steps_0 = next_1;
        fault_0 = next_2;
    }
    output[i] = steps_0;
    if (fault_0) flags[position] = 1;
}
