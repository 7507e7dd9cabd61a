/* SPDX-License-Identifier: MIT */
/* How tiles are divided, for all sizes that there may be. */

#include "cuda/kernels/stream_k.h"
#include "tests/unit/run.h"

#define H200 132 /* multiprocessors */

static bool equal(struct stream_k a, struct stream_k b)
{
    return a.n_whole == b.n_whole && a.n_divided == b.n_divided && a.n_shares == b.n_shares;
}

static bool is_whole(struct stream_k shares, uint32_t n_tiles)
{
    return equal(shares, (struct stream_k){n_tiles, 0, 0});
}

START_TEST(every_tile_is_whole_or_divided_and_no_share_is_empty_or_longer_than_a_tile)
{
    for (uint32_t n_multiprocessors = 1; n_multiprocessors < 20; n_multiprocessors++)
        for (uint32_t n_tiles = 1; n_tiles < 100; n_tiles++)
            for (uint32_t n_steps = 1; n_steps < 120; n_steps += 7)
                for (int rule = STREAM_K_PLANNED; rule <= STREAM_K_ALWAYS; rule++) {
                    const struct stream_k shares = stream_k_plan(n_tiles, n_steps, n_multiprocessors, rule);
                    const uint32_t room = n_multiprocessors * STREAM_K_AT_ONCE;
                    ck_assert_uint_eq(shares.n_whole + shares.n_divided, n_tiles);
                    ck_assert_uint_le(shares.n_divided, stream_k_most_divided(n_multiprocessors));
                    ck_assert_uint_le(shares.n_shares, room);
                    ck_assert_uint_eq(shares.n_shares == 0, shares.n_divided == 0);
                    if (shares.n_divided == 0)
                        continue;
                    ck_assert_uint_eq(shares.n_whole % room, 0);
                    ck_assert_uint_ge(shares.n_shares, shares.n_divided);
                    ck_assert_uint_le(shares.n_shares, shares.n_divided * STREAM_K_PARTS);
                }
}
END_TEST

START_TEST(what_is_divided_is_planned_to_be_done_clearly_sooner)
{
    uint32_t n_divided = 0;
    for (uint32_t n_tiles = 1; n_tiles < 700; n_tiles++)
        for (uint32_t n_steps = 1; n_steps < 120; n_steps++) {
            const struct stream_k shares = stream_k_plan(n_tiles, n_steps, H200, STREAM_K_PLANNED);
            if (shares.n_divided == 0)
                continue;
            const double parts = (double)shares.n_divided * STREAM_K_PARTS / shares.n_shares;
            const double together = shares.n_shares > H200 ? STREAM_K_PAIR : STREAM_K_ALONE;
            const double one_each = shares.n_divided > H200 ? STREAM_K_PAIR : STREAM_K_ALONE;
            ck_assert_double_lt((parts * n_steps / STREAM_K_PARTS + STREAM_K_COST) * together * 9 / 8,
                                one_each * n_steps);
            n_divided++;
        }
    ck_assert_uint_gt(n_divided, 0);
}
END_TEST

/* 64 rows: tiles are outputs / 64, steps columns / 256. */
START_TEST(layers_of_common_models_are_divided_where_it_helps)
{
    static const struct {
        const char *what;
        uint32_t n_outputs, n_columns;
        struct stream_k shares;
    } cases[] = {
        {"1B, q k v", 3072, 2048, {48, 0, 0}},
        {"1B, output", 2048, 2048, {0, 32, 256}},
        {"1B, gate and up", 16384, 2048, {256, 0, 0}},
        {"1B, down", 2048, 8192, {0, 32, 256}},
        {"7B of 3584, gate and up", 37888, 3584, {528, 64, 264}},
        {"8B, q k v", 6144, 4096, {0, 96, 264}},
        {"8B, output", 4096, 4096, {0, 64, 264}},
        {"8B, gate and up", 28672, 4096, {448, 0, 0}},
        {"8B, down", 4096, 14336, {0, 64, 264}},
        {"70B, q k v", 10240, 8192, {0, 160, 264}},
        {"70B, output", 8192, 8192, {128, 0, 0}},
        {"70B, gate and up", 57344, 8192, {896, 0, 0}},
        {"70B, down", 8192, 28672, {0, 128, 264}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct stream_k shares =
            stream_k_plan(cases[i].n_outputs / 64, cases[i].n_columns / 256, H200, STREAM_K_PLANNED);
        ck_assert_msg(equal(shares, cases[i].shares), "%s: %u whole, %u divided into %u shares",
                      cases[i].what, shares.n_whole, shares.n_divided, shares.n_shares);
    }
}
END_TEST

START_TEST(full_rounds_and_what_gains_nothing_stay_whole)
{
    for (uint32_t rounds = 0; rounds < 5; rounds++)
        for (int rule = STREAM_K_PLANNED; rule <= STREAM_K_ALWAYS; rule++)
            ck_assert(is_whole(stream_k_plan(rounds * 2 * H200, 56, H200, rule), rounds * 2 * H200));
    ck_assert(is_whole(stream_k_plan(64, 1, H200, STREAM_K_PLANNED), 64));     /* a step is not divided */
    ck_assert(is_whole(stream_k_plan(263, 112, H200, STREAM_K_PLANNED), 263)); /* nearly full */
    ck_assert(is_whole(stream_k_plan(64, 16, H200, STREAM_K_NEVER), 64));
    ck_assert(is_whole(stream_k_plan(64, 16, 0, STREAM_K_ALWAYS), 64)); /* nobody said how many there are */
    ck_assert_uint_eq(stream_k_most_divided(0), 0);
    ck_assert(equal(stream_k_plan(64, 1, H200, STREAM_K_ALWAYS), (struct stream_k){0, 64, 264}));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, every_tile_is_whole_or_divided_and_no_share_is_empty_or_longer_than_a_tile);
    tcase_add_test(tests, what_is_divided_is_planned_to_be_done_clearly_sooner);
    tcase_add_test(tests, layers_of_common_models_are_divided_where_it_helps);
    tcase_add_test(tests, full_rounds_and_what_gains_nothing_stay_whole);
}

int main(void)
{
    return run_tests("shares", add);
}
