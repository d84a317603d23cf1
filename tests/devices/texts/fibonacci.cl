
static i64 wadd(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
static bool addo(i64 a, i64 b) { i64 s = wadd(a, b); return ((a ^ s) & (b ^ s)) < 0; }

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
    i64 a_0 = 0;
    i64 b_0 = 1;
    bool fault_0 = false;
    const i64 count_0 = i;
    for (i64 k_0 = 0; k_0 < count_0; ++k_0) {
        const i64 next_0 = b_0;
        const i64 next_1 = wadd(a_0, b_0);
        const bool next_2 = fault_0 || addo(a_0, b_0);
        a_0 = next_0;
        b_0 = next_1;
        fault_0 = next_2;
    }
    output[i] = (fault_0 ? -1 : a_0);
}
