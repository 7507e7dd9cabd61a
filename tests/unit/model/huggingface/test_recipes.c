/* SPDX-License-Identifier: MIT */
/* How the numbers of published tensors become GGUF's: each recipe on numbers that tell where they came from.
 */

#include "model/huggingface/recipes.h"
#include "tests/unit/run.h"

#include <math.h>
#include <string.h>

/* Element i of any tensor is i. */
static float numbers[256];

static void set_up(void)
{
    for (size_t i = 0; i < 256; i++)
        numbers[i] = (float)i;
}

static struct safetensor floats = {
    .name = "x", .dtype = "F32", .element_size = 4, .data = (const uint8_t *)numbers};

/* Fills and compares with the numbers' places. */
static void expect(const struct place *place, const float *expected, size_t n)
{
    const struct recipe recipe = {.place = *place,
                                  .tensor = &floats,
                                  .format = FORMAT_F32,
                                  .n_key_heads = 2,
                                  .n_value_heads = 6,
                                  .value_dim = 2};
    float out[256];
    ck_assert_int_eq(recipe_wanted(&recipe), FORMAT_F32);
    const uint64_t rows = recipe_rows(&recipe);
    ck_assert_uint_eq(rows * place->columns, n);
    for (uint64_t first = 0; first < rows; first++) /* in any pieces */
        for (uint64_t some = 1; first + some <= rows; some++) {
            memset(out, 0xff, sizeof out);
            ck_assert_int_eq(recipe_fill(&recipe, first, some, out, NULL), 0);
            for (size_t i = 0; i < some * place->columns; i++) {
                const float wanted = expected[first * place->columns + i];
                ck_assert_msg(out[i] == wanted, "row %zu, %zu is %g, not %g", (size_t)first, i,
                              (double)out[i], (double)wanted);
            }
            ck_assert(isnan(out[some * place->columns])); /* and no more */
        }
}

START_TEST(rows_come_from_where_they_stood)
{
    expect(&(struct place){.rows = 2, .columns = 2, .count = 1, .how = COPIED}, (float[]){0, 1, 2, 3}, 4);
    expect(&(struct place){.rows = 2, .columns = 2, .count = 2, .stacked = true, .how = FIRST_HALF},
           (float[]){0, 1, 2, 3, 8, 9, 10, 11}, 8);
    expect(&(struct place){.rows = 2, .columns = 2, .count = 2, .stacked = true, .how = SECOND_HALF},
           (float[]){4, 5, 6, 7, 12, 13, 14, 15}, 8);
    expect(&(struct place){.rows = 2, .columns = 2, .count = 2, .stacked = true, .how = EVEN_ROWS},
           (float[]){0, 1, 4, 5, 8, 9, 12, 13}, 8);
    expect(&(struct place){.rows = 2, .columns = 2, .count = 2, .stacked = true, .how = ODD_ROWS},
           (float[]){2, 3, 6, 7, 10, 11, 14, 15}, 8);
}
END_TEST

START_TEST(columns_become_rows)
{
    expect(&(struct place){.rows = 2, .columns = 3, .count = 1, .turned = true, .how = TURNED},
           (float[]){0, 2, 4, 1, 3, 5}, 6);
    /* two experts of 3 × 4, whose every other column is a row */
    expect(
        &(struct place){
            .rows = 2, .columns = 3, .count = 2, .stacked = true, .turned = true, .how = ODD_ROWS},
        (float[]){1, 5, 9, 3, 7, 11, 13, 17, 21, 15, 19, 23}, 12);
}
END_TEST

/* Larger than a tile in both directions and no multiple of one, in a format of two bytes. */
START_TEST(columns_become_rows_in_any_size)
{
    enum { ROWS = 150, COLUMNS = 67 };
    static uint16_t data[2 * ROWS * COLUMNS], out[ROWS * COLUMNS];
    const struct safetensor halves = {
        .name = "h", .dtype = "BF16", .element_size = 2, .data = (const uint8_t *)data};
    const enum how hows[] = {TURNED, ODD_ROWS, VALUE_HEADS};
    for (size_t i = 0; i < 2 * ROWS * COLUMNS; i++)
        data[i] = (uint16_t)(0x80 + i); /* no two alike */
    for (size_t h = 0; h < 3; h++) {
        const struct recipe recipe = {
            .place = {.rows = ROWS, .columns = COLUMNS, .count = 1, .turned = true, .how = hows[h]},
            .tensor = &halves,
            .format = FORMAT_BF16,
            .n_key_heads = 2,
            .n_value_heads = 6,
            .value_dim = 25};
        const size_t there = hows[h] == ODD_ROWS ? 2 * ROWS : ROWS;
        for (uint64_t first = 0, n = 1; first < ROWS; first += n, n = n * 2 + 1) {
            n = n < ROWS - first ? n : ROWS - first;
            ck_assert_int_eq(recipe_fill(&recipe, first, n, &out[first * COLUMNS], NULL), 0);
        }
        for (size_t r = 0; r < ROWS; r++)
            for (size_t c = 0; c < COLUMNS; c++) {
                const size_t head = r / 25, by_heads = (head % 2 * 3 + head / 2) * 25 + r % 25;
                const size_t from = hows[h] == TURNED ? r : hows[h] == ODD_ROWS ? 2 * r + 1 : by_heads;
                ck_assert_msg(out[r * COLUMNS + c] == data[c * there + from], "how %zu, row %zu, column %zu",
                              h, r, c);
            }
    }
}
END_TEST

START_TEST(vectors_have_halves_too)
{
    expect(&(struct place){.columns = 3, .count = 2, .stacked = true, .plain = true, .how = EVEN_ROWS},
           (float[]){0, 2, 4, 6, 8, 10}, 6);
    expect(&(struct place){.columns = 3, .count = 2, .stacked = true, .plain = true, .how = ODD_ROWS},
           (float[]){1, 3, 5, 7, 9, 11}, 6);
    expect(&(struct place){.columns = 2, .count = 1, .plain = true, .how = ONE_ADDED}, (float[]){1, 2}, 2);
}
END_TEST

/* Six value heads of two share two key heads: 0, 1 and 2 the first, 3, 4 and 5 the second. */
START_TEST(value_heads_take_turns)
{
    expect(&(struct place){.rows = 12, .columns = 1, .count = 1, .how = VALUE_HEADS},
           (float[]){0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}, 12);
    expect(
        &(struct place){.rows = 14, .columns = 1, .count = 1, .how = VALUE_HEADS}, /* two rows before them */
        (float[]){0, 1, 2, 3, 8, 9, 4, 5, 10, 11, 6, 7, 12, 13}, 14);
    expect(&(struct place){.rows = 6, .columns = 1, .count = 1, .how = VALUE_HEADS}, /* one number for each */
           (float[]){0, 3, 1, 4, 2, 5}, 6);
    expect(&(struct place){.columns = 6, .count = 1, .plain = true, .how = VALUE_HEADS},
           (float[]){0, 3, 1, 4, 2, 5}, 6);
    expect(&(struct place){.rows = 1, .columns = 12, .count = 1, .how = VALUE_COLUMNS},
           (float[]){0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11}, 12);
    expect(&(struct place){.columns = 6, .count = 1, .plain = true, .how = DECAY},
           (float[]){-1, (float)-exp(3), (float)-exp(1), (float)-exp(4), (float)-exp(2), (float)-exp(5)}, 6);
}
END_TEST

/* gpt-oss: pairs of neighbours become GGUF's halves of a block; gates and ups take turns. */
START_TEST(blocks_of_mxfp4_are_repacked)
{
    uint8_t pairs[2 * 16], exponents[2] = {120, 130}, out[34];
    const struct safetensor blocks = {.name = "b", .dtype = "U8", .element_size = 1, .data = pairs};
    const struct safetensor scales = {.name = "s", .dtype = "U8", .element_size = 1, .data = exponents};
    for (size_t i = 0; i < 32; i++) /* value i of a row is i mod 16, of the second the other way round */
        pairs[i] = (uint8_t)(i < 16 ? (2 * i) % 16 | (2 * i + 1) % 16 << 4
                                    : (15 - 2 * i % 16) | (14 - 2 * i % 16) << 4);
    const enum how hows[] = {EVEN_ROWS, ODD_ROWS, COPIED};
    for (size_t h = 0; h < 3; h++) {
        const struct place place = {
            .rows = hows[h] == COPIED ? 2 : 1, .columns = 32, .count = 1, .stacked = true, .how = hows[h]};
        const struct recipe recipe = {.place = place, .tensor = &blocks, .exponents = &scales};
        ck_assert_int_eq(recipe_wanted(&recipe), FORMAT_MXFP4);
        ck_assert(!recipe_is_copy(&recipe));
        ck_assert_int_eq(recipe_fill(&recipe, 0, recipe_rows(&recipe), out, NULL), 0);
        const bool second = hows[h] == ODD_ROWS;
        ck_assert_uint_eq(out[0], exponents[second]);
        for (uint8_t i = 0; i < 16; i++) { /* values i and i + 16 are alike here */
            const uint8_t value = second ? 15 - i : i;
            ck_assert_uint_eq(out[1 + i], value | value << 4);
        }
        if (hows[h] == COPIED)
            ck_assert_uint_eq(out[17], exponents[1]);
    }
    float values[32];
    const uint8_t block[17] = {128, 0x21}; /* ½ · 2 and 1 · 2 */
    format_traits(FORMAT_MXFP4)->to_float(block, values, 32);
    ck_assert(values[0] == 1 && values[16] == 2);
}
END_TEST

/* As they lie, or not. */
START_TEST(only_what_is_the_same_is_used_where_it_lies)
{
    const struct place copied = {.rows = 2, .columns = 2, .count = 1, .how = COPIED};
    const struct place vector = {.columns = 2, .count = 1, .plain = true, .how = COPIED};
    struct safetensor half = {
        .name = "h", .dtype = "F16", .element_size = 2, .data = (const uint8_t *)numbers};
    struct recipe recipe = {.place = copied, .tensor = &half, .format = FORMAT_F16};
    ck_assert(recipe_is_copy(&recipe));
    half.data++;
    ck_assert(!recipe_is_copy(&recipe));
    half.data--;
    recipe.is_fp8 = true;
    ck_assert(!recipe_is_copy(&recipe));
    recipe.is_fp8 = false;
    recipe.place = vector; /* becomes F32 */
    ck_assert(!recipe_is_copy(&recipe) && recipe_wanted(&recipe) == FORMAT_F32);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, rows_come_from_where_they_stood);
    tcase_add_test(tests, columns_become_rows);
    tcase_add_test(tests, columns_become_rows_in_any_size);
    tcase_add_test(tests, vectors_have_halves_too);
    tcase_add_test(tests, value_heads_take_turns);
    tcase_add_test(tests, blocks_of_mxfp4_are_repacked);
    tcase_add_test(tests, only_what_is_the_same_is_used_where_it_lies);
}

int main(void)
{
    return run_tests("recipes", add);
}
