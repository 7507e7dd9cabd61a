/* SPDX-License-Identifier: MIT */
/* compare_logits EXPECTED ACTUAL N_VOCAB BOUND: two files of float32 logits, rows of N_VOCAB, as `quern
 * logits
 * --all` writes them. Passes when the NMSE of every row is within the bound, and the largest logit is at the
 * same id wherever its lead is too large to be an error of that size. Prints one line. */

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct row {
    double nmse;
    size_t best;    /* of the expected */
    bool same_best; /* or too close to tell */
};

static float *read_floats(const char *path, size_t *ret_n)
{
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) < 0) {
        perror(path);
        exit(2);
    }
    *ret_n = (size_t)ftell(file) / sizeof(float);
    rewind(file);
    float *floats = calloc(*ret_n + 1, sizeof *floats);
    if (!floats || fread(floats, sizeof *floats, *ret_n, file) != *ret_n) {
        fprintf(stderr, "%s cannot be read\n", path);
        exit(2);
    }
    fclose(file);
    return floats;
}

static size_t best_of(const float *x, size_t n)
{
    size_t best = 0;
    for (size_t i = 1; i < n; i++)
        if (x[i] > x[best])
            best = i;
    return best;
}

static struct row compare(const float *expected, const float *actual, size_t n)
{
    double mean = 0, spread = 0, error = 0;
    for (size_t i = 0; i < n; i++)
        mean += expected[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        spread += (expected[i] - mean) * (expected[i] - mean);
        error += ((double)actual[i] - expected[i]) * ((double)actual[i] - expected[i]);
    }
    struct row row = {.nmse = error / spread, .best = best_of(expected, n)};
    double lead = (expected[row.best] - (double)expected[best_of(actual, n)]) / sqrt(spread / (double)n);
    row.same_best = lead <= fmax(0.05, 4 * sqrt(2 * row.nmse)); /* false for NaN too */
    return row;
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "compare_logits EXPECTED ACTUAL N_VOCAB BOUND\n");
        return 2;
    }
    size_t n_expected, n_actual, n_vocab = strtoul(argv[3], NULL, 10), n_wrong = 0;
    double bound = strtod(argv[4], NULL), worst = 0;
    float *expected = read_floats(argv[1], &n_expected), *actual = read_floats(argv[2], &n_actual);
    if (n_vocab == 0 || n_expected == 0 || n_expected != n_actual || n_expected % n_vocab != 0) {
        printf("%zu and %zu logits are no equal rows of %zu\n", n_expected, n_actual, n_vocab);
        return 1;
    }
    for (size_t i = 0; i < n_expected; i += n_vocab) {
        struct row row = compare(expected + i, actual + i, n_vocab);
        n_wrong += !row.same_best;
        if (!(row.nmse <= worst)) /* NaN is the worst */
            worst = row.nmse;
    }
    printf("%zu rows, worst NMSE %.2e of %.0e, %zu with another best id\n", n_expected / n_vocab, worst,
           bound, n_wrong);
    free(expected);
    free(actual);
    return worst <= bound && n_wrong == 0 ? 0 : 1;
}
