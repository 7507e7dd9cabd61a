/* SPDX-License-Identifier: MIT */
/* How products are made, by measuring: on an emulated device whose clock its counts drive, so that each way
 * is as fast as the test wants. */

#include "common/files/rundir.h"
#include "cuda/kernels/kernels.h"
#include "engine/backend/choices/kept.h"
#include "tests/unit/cuda/large_backend.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[RUNDIR_PATH_MAX + 1];
static uint32_t max_rows;    /* of a step; few, where many change nothing: emulated products are slow */
static struct choices table; /* the one that is kept */
static int n_tables;

static void set_up(void)
{
    struct synth_shape shape = small_shape;
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    setenv("XDG_CACHE_HOME", folder, 1);
    setenv("QUERN_EMU_CLOCK", "", 1);
    max_rows = 16;
    shape.n_layers = 1;
    shape.n_heads = 2;
    shape.n_kv_heads = 1;
    model = make_model(&shape, "Q8_0");
}

static void tear_down(void)
{
    char command[RUNDIR_PATH_MAX + 32];
    model_free(model);
    unsetenv("QUERN_EMU_CLOCK");
    snprintf(command, sizeof command, "rm -rf %s", folder);
    ck_assert_int_eq(system(command), 0);
}

static void forget_all(void)
{
    char command[RUNDIR_PATH_MAX + 64];
    snprintf(command, sizeof command, "rm -rf %s/quern", folder);
    ck_assert_int_eq(system(command), 0);
}

static void see(void *arg, const struct choices *choices)
{
    table = *choices;
    n_tables++;
}

static void read_table(void)
{
    n_tables = 0;
    kept_list(see, NULL);
    ck_assert_int_eq(n_tables, 1);
}

/* Opens with a clock on which the kernels in the list are so much slower. */
static struct backend *open_on(const char *clock, uint32_t library_rows)
{
    struct backend_config config = config_of(library_rows);
    struct backend *backend = NULL;
    struct error err;
    config.max_rows = max_rows;
    setenv("QUERN_EMU_CLOCK", clock, 1);
    ck_assert_msg(open_as(&quern_backend, &config, &backend, &err) == 0, "%s", err.text);
    return backend;
}

static struct backend *open_unmeasured(void)
{
    unsetenv("QUERN_EMU_CLOCK");
    struct backend *backend = open_backend(&quern_backend, 0);
    struct backend_info info;
    quern_backend.info(backend, &info);
    ck_assert_str_eq(info.choices, "");
    ck_assert_uint_eq(info.choices_arithmetic, 0);
    return backend;
}

/* One of them where everything is slow: the others do the same to memory. */
static size_t cases_of(size_t n)
{
    return test_is_scaled() ? 1 : n;
}

static uint32_t chosen(enum product_way way, uint32_t rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < table.n_launches; i++)
        n += table.launches[i].buckets[choices_bucket_of(rows)].way == way;
    return n;
}

/* ---- choosing ---- */

/* What is made otherwise is made of the same numbers in the same order: no choice of our own ways changes a
 * bit. */
START_TEST(each_way_is_chosen_where_it_is_the_fastest_and_changes_no_bit)
{
    max_rows = 128;
    static const struct {
        const char *clock;
        uint32_t rows;
        enum product_way way;
        const char *kernel;
    } cases[] = {{"multiply_thin=0.01", 32, PRODUCT_THIN_16, "multiply_thin"},
                 {"multiply_thin=0.001", 128, PRODUCT_THIN_16, "multiply_thin"},
                 {"multiply_wide=0.001", 16, PRODUCT_WIDE, "multiply_wide"},
                 {"multiply_stream_k=0.001", 128, PRODUCT_SHARED, "multiply_stream_k"}};
    static const uint32_t rows[] = {5, 9, 31, 33, 100}; /* those of each case among them */
    enum { N_ROWS = sizeof rows / sizeof *rows };
    float *expected[N_ROWS];
    struct backend *plain = open_unmeasured();
    for (size_t i = 0; i < N_ROWS; i++)
        expected[i] = logits_of(&quern_backend, plain, rows[i]);
    quern_backend.close(plain);
    for (size_t c = 0; c < cases_of(sizeof cases / sizeof *cases); c++) {
        max_rows = c == 0 ? cases[c].rows : 128;
        struct backend *backend = open_on(cases[c].clock, 0);
        struct backend_info info;
        quern_backend.info(backend, &info);
        ck_assert_uint_eq(info.choices_arithmetic, 0);
        read_table();
        /* Where nothing is left over, there is nothing to share. */
        ck_assert_msg(chosen(cases[c].way, cases[c].rows) > 0, "%s: %u of %u", cases[c].clock,
                      chosen(cases[c].way, cases[c].rows), table.n_launches);
        for (size_t i = 0; i < N_ROWS && rows[i] <= max_rows; i++) {
            launches(backend, "");
            float *found = logits_of(&quern_backend, backend, rows[i]);
            if (choices_bucket_of(rows[i]) == choices_bucket_of(cases[c].rows))
                ck_assert_uint_gt(launches(backend, cases[c].kernel), 0);
            ck_assert_msg(memcmp(expected[i], found, rows[i] * model->params.n_vocab * sizeof *found) == 0,
                          "%s, %u rows", cases[c].clock, rows[i]);
            free(found);
        }
        quern_backend.close(backend);
        forget_all();
    }
    for (size_t i = 0; i < N_ROWS; i++)
        free(expected[i]);
}
END_TEST

START_TEST(the_rules_way_stays_where_no_other_is_clearly_faster)
{
    max_rows = 64;
    struct backend *backend = open_on("multiply_thin=1.02", 0);
    read_table();
    ck_assert_int_gt((int)table.n_launches, 4);
    ck_assert_uint_eq(chosen(PRODUCT_THIN_8, 8), table.n_launches);
    for (uint32_t i = 0; i < table.n_launches; i++)
        for (uint32_t b = 0; b < CHOICES_BUCKETS; b++) {
            const struct choices_bucket *bucket = &table.launches[i].buckets[b];
            if (choices_rows(b) <= KERNELS_GEMV || choices_rows(b) > 128)
                ck_assert_int_eq(bucket->way, PRODUCT_BY_RULE);
            else if (bucket->way != bucket->rule)
                ck_assert_uint_lt(bucket->ns[bucket->way] * 33ull, bucket->ns[bucket->rule] * 32ull);
        }
    quern_backend.close(backend);
}
END_TEST

/* ---- the library ---- */

START_TEST(the_library_gets_the_rows_from_which_it_is_faster)
{
    max_rows = 128;
    struct backend *backend =
        open_on("multiply_wide=5,multiply_stream_k=5,multiply_thin=5", BACKEND_LIBRARY_MEASURED);
    struct backend_info info;
    read_table();
    quern_backend.info(backend, &info);
    ck_assert_uint_ne(info.choices_arithmetic, 0);
    ck_assert_uint_gt(chosen(PRODUCT_LIBRARY, 128), 3);
    ck_assert_uint_eq(chosen(PRODUCT_LIBRARY, 64), 0);
    ck_assert_msg(
        strstr(said, "products by cuBLASLt 13.0.0 where it was measured to be faster: from 65 rows on"), "%s",
        said);
    launches(backend, "");
    free(logits_of(&quern_backend, backend, 64));
    ck_assert_uint_eq(launches(backend, "cublasLtMatmul"), 0);
    free(logits_of(&quern_backend, backend, 65));
    ck_assert_uint_gt(launches(backend, "cublasLtMatmul"), 3);
    quern_backend.close(backend);
}
END_TEST

/* Some launches are the library's, and others are not. */
START_TEST(only_launches_that_are_faster_with_it_are_the_librarys)
{
    max_rows = 128;
    struct backend *backend = open_on("unpack_weights=0.5", BACKEND_LIBRARY_MEASURED);
    read_table();
    const uint32_t n = chosen(PRODUCT_LIBRARY, 128);
    ck_assert_uint_gt(n, 0);
    ck_assert_uint_lt(n, table.n_launches - 1); /* the head is never */
    uint32_t n_matrices = 0;
    for (uint32_t i = 0; i < table.n_launches; i++)
        n_matrices += table.launches[i].buckets[7].way == PRODUCT_LIBRARY ? table.launches[i].n : 0;
    launches(backend, "");
    free(logits_of(&quern_backend, backend, 100));
    ck_assert_uint_eq(launches(backend, "cublasLtMatmul"), n_matrices);
    quern_backend.close(backend);
}
END_TEST

START_TEST(where_our_own_tiles_are_faster_the_library_has_neither_products_nor_memory)
{
    max_rows = 128;
    struct backend *plain = open_unmeasured();
    struct backend *backend = open_on("cublasLtMatmul=1000", BACKEND_LIBRARY_MEASURED);
    struct backend_info info, other;
    ck_assert_msg(strstr(said, "cuBLASLt is not used: no product was measured to be faster with it"), "%s",
                  said);
    quern_backend.info(plain, &other);
    quern_backend.info(backend, &info);
    ck_assert_uint_eq(info.choices_arithmetic, 0);
    ck_assert_uint_eq(info.memory_bytes, other.memory_bytes);
    float *a = logits_of(&quern_backend, plain, 100), *b = logits_of(&quern_backend, backend, 100);
    ck_assert_mem_eq(a, b, 100 * model->params.n_vocab * sizeof *a);
    free(a);
    free(b);
    quern_backend.close(plain);
    quern_backend.close(backend);
}
END_TEST

START_TEST(without_a_clock_the_library_is_not_chosen)
{
    unsetenv("QUERN_EMU_CLOCK");
    struct backend *backend = open_backend(&quern_backend, BACKEND_LIBRARY_MEASURED);
    ck_assert_msg(strstr(said, "cuBLASLt is not used: products are not measured here"), "%s", said);
    check_own(backend);
}
END_TEST

/* Rows from which it is asked for stay as they are. */
START_TEST(a_number_of_rows_is_no_matter_of_choice)
{
    max_rows = 128;
    struct backend *backend = open_on("cublasLtMatmul=1000", ROWS);
    read_table();
    ck_assert_uint_eq(table.key.library, 0);
    launches(backend, "");
    free(logits_of(&quern_backend, backend, ROWS));
    ck_assert_uint_eq(launches(backend, "cublasLtMatmul"), 7);
    quern_backend.close(backend);
}
END_TEST

/* ---- time ---- */

START_TEST(measuring_ends_in_time_and_what_was_not_reached_stays_by_rule)
{
    max_rows = 128;
    struct backend *backend = open_on("multiply_thin=4000,multiply_wide=4000,multiply_stream_k=4000", 0);
    read_table();
    const struct choices_counts counts = choices_count(&table);
    ck_assert_uint_eq(table.complete, 0);
    ck_assert_uint_gt(counts.measured, 0);
    ck_assert_uint_lt(counts.measured, 5 * table.n_launches);
    ck_assert_uint_gt(table.measured_ns, 2000000000);
    ck_assert_uint_lt(table.measured_ns, 2500000000); /* and a turn */
    ck_assert_ptr_nonnull(strstr(said, ", time ran out"));
    /* The launch that reads the most is gate and up, then down. */
    for (uint32_t i = 0; i < table.n_launches; i++)
        if (table.launches[i].buckets[3].way != PRODUCT_BY_RULE)
            ck_assert_uint_ge(table.launches[i].matrices[0].n_rows * table.launches[i].matrices[0].n_columns,
                              405u * 256);
    free(logits_of(&quern_backend, backend, 100));
    quern_backend.close(backend);
}
END_TEST

/* ---- keeping ---- */

START_TEST(what_is_kept_is_taken_and_not_measured_again)
{
    struct backend *first = open_on("multiply_wide=0.001", 0);
    ck_assert_ptr_null(strstr(said, "by another worker"));
    read_table();
    const struct choices before = table;
    struct backend *second = open_on("multiply_thin=0.001", 0);
    ck_assert_msg(strstr(said, ", by another worker or an earlier start\n"), "%s", said);
    read_table();
    ck_assert_mem_eq(&table, &before, sizeof table);
    struct backend_info a, b;
    quern_backend.info(first, &a);
    quern_backend.info(second, &b);
    ck_assert_str_eq(a.choices, b.choices);
    launches(second, "");
    free(logits_of(&quern_backend, second, 16));
    ck_assert_uint_eq(launches(second, "multiply_thin"), 0);
    quern_backend.close(first);
    quern_backend.close(second);
}
END_TEST

/* A step of other rows, other weights. That the library is a part of the key, the number of rows shows. */
START_TEST(another_situation_has_a_table_of_its_own)
{
    struct backend_config config = config_of(0);
    struct backend *backend = NULL;
    struct error err;
    quern_backend.close(open_on("", 0));
    config.max_rows = 8;
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), 0);
    quern_backend.close(backend);
    struct model *others = model;
    model = make_model(&small_shape, "Q4_K_M");
    config = config_of(0);
    config.max_rows = 16;
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), 0);
    quern_backend.close(backend);
    model_free(model);
    model = others;
    n_tables = 0;
    kept_list(see, NULL);
    ck_assert_int_eq(n_tables, 3);
}
END_TEST

static void spoil(const char *how)
{
    char command[RUNDIR_PATH_MAX + 256];
    snprintf(command, sizeof command, "cd %s/quern/choices && F=$(ls | grep -v lock) && %s", folder, how);
    ck_assert_int_eq(system(command), 0);
}

START_TEST(a_spoiled_table_is_said_once_and_measured_anew)
{
    static const char *const ways[] = {"truncate -s 100 $F", ": > $F",
                                       "printf X | dd of=$F bs=1 seek=5000 conv=notrunc 2>/dev/null",
                                       "chmod a+w $F", "rm $F && ln -s /etc/passwd $F"};
    quern_backend.close(open_on("", 0));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        spoil(ways[i]);
        quern_backend.close(open_on("", 0));
        const char *line = strstr(said, "measuring choices of products again: ");
        ck_assert_msg(line && !strstr(line + 1, "measuring choices of products again: "), "%s: %s", ways[i],
                      said);
        ck_assert_ptr_null(strstr(said, "by another worker"));
        quern_backend.close(open_on("", 0));
        ck_assert_msg(strstr(said, "by another worker"), "%s: %s", ways[i], said);
    }
}
END_TEST

/* With the right checksum, key and number of launches, and matrices that the model does not have. */
START_TEST(a_table_that_lies_about_its_launches_is_not_taken)
{
    struct error err;
    quern_backend.close(open_on("", 0));
    read_table();
    table.launches[0].matrices[0].n_rows++;
    ck_assert_int_eq(kept_write(&table, &err), 0);
    quern_backend.close(open_on("", 0));
    ck_assert_msg(
        strstr(said, "measuring choices of products again: the launches in the table do not match its key"),
        "%s", said);
}
END_TEST

/* Whatever stands there is computed right. */
START_TEST(any_way_that_a_table_names_gives_the_same_bits)
{
    max_rows = 128;
    static const enum product_way ways[] = {PRODUCT_BY_RULE, PRODUCT_THIN_8, PRODUCT_THIN_16, PRODUCT_WIDE,
                                            PRODUCT_SHARED};
    static const uint32_t rows[] = {5, 20, 80};
    enum { N_ROWS = sizeof rows / sizeof *rows };
    float *expected[N_ROWS];
    struct backend *plain = open_unmeasured();
    struct error err;
    for (size_t i = 0; i < N_ROWS; i++)
        expected[i] = logits_of(&quern_backend, plain, rows[i]);
    quern_backend.close(plain);
    quern_backend.close(open_on("", 0));
    read_table();
    for (size_t w = 0; w < cases_of(sizeof ways / sizeof *ways); w++) {
        for (uint32_t i = 0; i < table.n_launches; i++)
            for (uint32_t b = 0; b < CHOICES_BUCKETS; b++) {
                table.launches[i].buckets[b].way = table.launches[i].buckets[b].own = (uint8_t)ways[w];
                table.launches[i].buckets[b].ns[ways[w]] = 1;
            }
        ck_assert_int_eq(kept_write(&table, &err), 0);
        struct backend *backend = open_on("", 0);
        ck_assert_msg(strstr(said, "by another worker"), "%s", said);
        for (size_t i = 0; i < N_ROWS; i++) {
            float *found = logits_of(&quern_backend, backend, rows[i]);
            ck_assert_mem_eq(expected[i], found, rows[i] * model->params.n_vocab * sizeof *found);
            free(found);
        }
        quern_backend.close(backend);
    }
    for (size_t i = 0; i < N_ROWS; i++)
        free(expected[i]);
}
END_TEST

START_TEST(a_table_that_cannot_be_kept_is_used_all_the_same)
{
    setenv("XDG_CACHE_HOME", "/proc/nowhere", 1);
    struct backend *backend = open_on("multiply_wide=0.001", 0);
    setenv("XDG_CACHE_HOME", folder, 1);
    ck_assert_msg(strstr(said, "choices of products cannot be stored: "), "%s", said);
    launches(backend, "");
    free(logits_of(&quern_backend, backend, 16));
    ck_assert_uint_gt(launches(backend, "multiply_wide"), 0);
    quern_backend.close(backend);
}
END_TEST

/* ---- who does not measure ---- */

START_TEST(an_invariant_device_has_fixed_choices)
{
    struct backend_config config = config_of(0);
    struct backend *backend = NULL;
    struct backend_info info;
    struct error err;
    config.invariant = true;
    config.max_rows = max_rows;
    setenv("QUERN_EMU_CLOCK", "multiply_wide=0.001", 1);
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), 0);
    quern_backend.info(backend, &info);
    ck_assert_str_eq(info.choices, "");
    launches(backend, "");
    free(logits_of(&quern_backend, backend, 16));
    ck_assert_uint_eq(launches(backend, "multiply_wide"), 0);
    quern_backend.close(backend);
    n_tables = 0;
    kept_list(see, NULL);
    ck_assert_int_eq(n_tables, 0);
    config.cuda.library_rows = BACKEND_LIBRARY_MEASURED;
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), -EINVAL);
}
END_TEST

START_TEST(variables_for_finding_out_leave_the_rule)
{
    max_rows = 128;
    static const char *const variables[][2] = {{"QUERN_UNMEASURED", "1"},
                                               {"QUERN_SHARES", "never"},
                                               {"QUERN_SHARES", "always"},
                                               {"QUERN_EMU_NO_CAPTURE", "1"}};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
        struct backend_info info;
        setenv(variables[i][0], variables[i][1], 1);
        struct backend *backend = open_on("", BACKEND_LIBRARY_MEASURED);
        unsetenv(variables[i][0]);
        quern_backend.info(backend, &info);
        ck_assert_msg(info.choices[0] == 0, "%s: %s", variables[i][0], info.choices);
        ck_assert_msg(strstr(said, "cuBLASLt is not used"), "%s: %s", variables[i][0], said);
        quern_backend.close(backend);
    }
    ck_assert_msg(strstr(said, "choices of products are not measured: the driver does not record"), "%s",
                  said);
}
END_TEST

START_TEST(a_device_that_the_gate_rejects_leaves_no_table)
{
    struct backend_config config = config_of(0);
    struct backend *backend = NULL;
    struct error err;
    config.max_rows = 16;
    setenv("QUERN_UNCHECKED", "0", 1);
    setenv("QUERN_EMU_SKIP", "heads", 1);
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), -ENODEV);
    unsetenv("QUERN_EMU_SKIP");
    n_tables = 0;
    kept_list(see, NULL);
    ck_assert_int_eq(n_tables, 0);
    ck_assert_msg(open_as(&quern_backend, &config, &backend, &err) == 0, "%s", err.text);
    setenv("QUERN_UNCHECKED", "1", 1);
    quern_backend.close(backend);
    read_table();
}
END_TEST

/* By rule its prompts have wide tiles, so a fault there shows; where thin ones were chosen, there are none.
 */
START_TEST(the_gate_judges_the_kernels_that_were_chosen)
{
    struct backend_config config = config_of(0);
    struct backend *backend = NULL;
    struct error err;
    config.max_rows = 64;
    setenv("QUERN_UNCHECKED", "0", 1);
    setenv("QUERN_EMU_SKIP", "multiply_wide", 1);
    setenv("QUERN_UNMEASURED", "1", 1);
    ck_assert_int_eq(open_as(&quern_backend, &config, &backend, &err), -ENODEV);
    unsetenv("QUERN_UNMEASURED");
    setenv("QUERN_EMU_CLOCK", "multiply_thin=0.001", 1);
    ck_assert_msg(open_as(&quern_backend, &config, &backend, &err) == 0, "%s", err.text);
    quern_backend.close(backend);
    unsetenv("QUERN_EMU_SKIP");
    setenv("QUERN_UNCHECKED", "1", 1);
}
END_TEST

/* The device fails, or hangs, while it measures. */
START_TEST(a_fault_while_measuring_is_the_devices)
{
    static const char *const faults[] = {"QUERN_EMU_FAULT", "QUERN_EMU_STALL"};
    struct backend_config config = config_of(0);
    config.max_rows = max_rows;
    for (int i = 0; i < 2; i++) {
        struct backend *backend = NULL;
        struct error err;
        setenv(faults[i], "20", 1);
        int r = open_as(&quern_backend, &config, &backend, &err);
        unsetenv(faults[i]);
        ck_assert_msg(r == -EIO || r == -ETIMEDOUT, "%s: %d", faults[i], r);
        ck_assert_msg(strstr(err.text, i == 0 ? "kernel multiply" : "no progress"), "%s", err.text);
        n_tables = 0;
        kept_list(see, NULL);
        ck_assert_int_eq(n_tables, 0);
    }
}
END_TEST

/* ---- several workers ---- */

/* What a worker says that opens at the moment, on a clock of its own. */
static pid_t open_in_child(const char *clock, int out)
{
    const pid_t child = fork();
    if (child != 0)
        return child;
    struct backend *backend = open_on(clock, BACKEND_LIBRARY_MEASURED);
    struct backend_info info;
    quern_backend.info(backend, &info);
    const bool took = strstr(said, "by another worker") != NULL;
    char line[256] = {0};
    snprintf(line, sizeof line, "%d %016llx %s", took, (unsigned long long)info.choices_arithmetic,
             info.choices);
    _exit(write(out, line, sizeof line) == sizeof line ? 0 : 1);
}

START_TEST(workers_that_start_together_have_the_same_choices)
{
    max_rows = 128;
    static const char *const clocks[] = {"cublasLtMatmul=0.01,unpack_weights=0.01", "cublasLtMatmul=1000",
                                         "multiply_wide=0.001"};
    char lines[3][256];
    int out[2], n_took = 0;
    ck_assert_int_eq(pipe(out), 0);
    for (int i = 0; i < 3; i++)
        ck_assert_int_gt(open_in_child(clocks[i], out[1]), 0);
    for (int i = 0; i < 3; i++) {
        int status;
        ck_assert_int_eq((int)read(out[0], lines[i], sizeof lines[i]), (int)sizeof lines[i]);
        ck_assert_int_gt(wait(&status), 0);
        ck_assert_int_eq(status, 0);
        n_took += lines[i][0] == '1';
        ck_assert_str_eq(lines[i] + 2, lines[0] + 2);
    }
    ck_assert_int_eq(n_took, 2);
    close(out[0]);
    close(out[1]);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, each_way_is_chosen_where_it_is_the_fastest_and_changes_no_bit);
    tcase_add_test(tests, the_rules_way_stays_where_no_other_is_clearly_faster);
    tcase_add_test(tests, the_library_gets_the_rows_from_which_it_is_faster);
    tcase_add_test(tests, only_launches_that_are_faster_with_it_are_the_librarys);
    tcase_add_test(tests, where_our_own_tiles_are_faster_the_library_has_neither_products_nor_memory);
    tcase_add_test(tests, without_a_clock_the_library_is_not_chosen);
    tcase_add_test(tests, a_number_of_rows_is_no_matter_of_choice);
    tcase_add_test(tests, measuring_ends_in_time_and_what_was_not_reached_stays_by_rule);
    tcase_add_test(tests, what_is_kept_is_taken_and_not_measured_again);
    tcase_add_test(tests, another_situation_has_a_table_of_its_own);
    tcase_add_test(tests, a_spoiled_table_is_said_once_and_measured_anew);
    tcase_add_test(tests, a_table_that_lies_about_its_launches_is_not_taken);
    tcase_add_test(tests, any_way_that_a_table_names_gives_the_same_bits);
    tcase_add_test(tests, a_table_that_cannot_be_kept_is_used_all_the_same);
    tcase_add_test(tests, an_invariant_device_has_fixed_choices);
    tcase_add_test(tests, variables_for_finding_out_leave_the_rule);
    tcase_add_test(tests, a_device_that_the_gate_rejects_leaves_no_table);
    tcase_add_test(tests, the_gate_judges_the_kernels_that_were_chosen);
    tcase_add_test(tests, a_fault_while_measuring_is_the_devices);
    tcase_add_test(tests, workers_that_start_together_have_the_same_choices);
}

int main(void)
{
    return run_tests("choices of products", add);
}
