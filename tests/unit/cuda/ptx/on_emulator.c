/* SPDX-License-Identifier: MIT */
/*
 * Runs on the emulated device what test_ptx.py asks for, and says what came out: a request a line on standard
 * input, memory in hexadecimal.
 *
 *   run NAME THREADS IN OUT            out OUT
 *   tile FORMAT ROWS COLUMNS X_ROWS    launch, parameter, region, weights, x, stride, end
 *   attend HEADS DIM ROWS POSITION     launch, parameter, region, end
 *
 * launch is GRID_X GRID_Y THREADS SHARED; parameter the bytes of one; region ADDRESS BEFORE AFTER of a piece
 * of memory that the kernel may touch, the outputs first; weights the floats of the file's format, x those
 * that the quants stand for. Attention is of neighbouring rows of one sequence from POSITION on, with one
 * head of keys and values in f16. What is multiplied is random, the same in every run.
 */

#include "tests/unit/cuda/ptx/primitives.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/kernels/layout.h"
#include "cuda/kernels/state.h"
#include "engine/backend/backend.h"
#include "tests/unit/cpu/random_weights.h"

#define MOST_REGIONS 8
#define OUT_STRIDE   19 /* floats of a row of the product: more than a tile has rows */

struct region {
    uint8_t *memory, *before;
    size_t bytes;
};

static struct device *device;
static struct region regions[MOST_REGIONS];
static uint32_t n_regions;

_Noreturn static void fail(const char *what)
{
    fprintf(stderr, "on_emulator: %s\n", what);
    exit(2);
}

static void *take(size_t bytes)
{
    void *memory = device_pinned(device, bytes);
    if (!memory || n_regions == MOST_REGIONS)
        fail("no memory");
    memset(memory, 0x7b, bytes);
    regions[n_regions++] = (struct region){memory, NULL, bytes};
    return memory;
}

static void give_back(void)
{
    for (; n_regions > 0; n_regions--) {
        device_pinned_free(device, regions[n_regions - 1].memory);
        free(regions[n_regions - 1].before);
    }
    n_regions = 0;
}

static void finish(int r)
{
    if (r < 0 || device_synchronize(device_stream(device)) < 0)
        fail("a launch failed");
}

static void print_hex(const void *memory, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        printf("%02x", ((const uint8_t *)memory)[i]);
}

static void read_hex(const char *text, uint8_t *to)
{
    for (unsigned byte; sscanf(text, "%2x", &byte) == 1; text += 2)
        *to++ = (uint8_t)byte;
}

static void run_primitive(const char *name, uint32_t n_threads, const char *in, const char *out)
{
    const size_t in_bytes = strlen(in) / 2, out_bytes = strlen(out) / 2;
    uint8_t *reads = take(in_bytes), *writes = take(out_bytes);
    read_hex(in, reads);
    read_hex(out, writes);
    finish(launch_primitive(device_stream(device), name, n_threads, reads, writes));
    printf("out ");
    print_hex(writes, out_bytes);
    puts("");
}

static enum format format_named(const char *name)
{
    for (size_t i = 0; i < N_TESTED_FORMATS; i++)
        if (!strcmp(format_traits(tested_formats[i])->name, name))
            return tested_formats[i];
    fail("no such format");
}

/* ret_floats: [n_rows][n_columns] */
static void make_matrix(enum format format, uint32_t n_rows, uint32_t n_columns,
                        struct device_matrix *ret_matrix, float *ret_floats)
{
    const struct layout *layout = layout_of(format);
    uint8_t *file = random_row(format, (size_t)n_rows * n_columns), *planes[LAYOUT_PLANES];
    uint8_t *packed = take(layout_bytes(layout, n_rows, n_columns));
    layout_place(layout, n_rows, n_columns, packed, (void **)planes);
    layout_pack(format, file, n_rows, n_columns, planes);
    *ret_matrix = (struct device_matrix){.format = format,
                                         .n_rows = n_rows,
                                         .n_columns = n_columns,
                                         .padded_columns = layout_padded(n_columns)};
    for (int i = 0; i < LAYOUT_PLANES; i++)
        ret_matrix->planes[i] = planes[i];
    for (uint32_t i = 0; i < n_rows; i++)
        format_traits(format)->to_float(file + i * format_bytes(format, n_columns),
                                        ret_floats + (size_t)i * n_columns, n_columns);
    free(file);
}

/* Rows of n_columns, quantized on the device; ret_floats: [n_rows][stride] */
static void make_activations(uint32_t n_columns, uint32_t n_rows, struct device_activations *ret_x,
                             float *ret_floats)
{
    const uint32_t stride = layout_padded(n_columns);
    const size_t n = (size_t)n_rows * stride;
    *ret_x = (struct device_activations){take(n * sizeof(float)), take(n), take(n / 32 * sizeof(float)),
                                         take(n / 32 * sizeof(float)), stride};
    for (size_t i = 0; i < n; i++)
        ret_x->values[i] = i % stride < n_columns ? random_float() : 0;
    finish(kernels_quantize(device_stream(device), ret_x, n_columns, n_rows));
    for (size_t i = 0; i < n; i++)
        ret_floats[i] =
            ret_x->scales[i / 32] *
            (float)ret_x->quants[i / stride * stride + layout_quant_place((uint32_t)(i % stride))];
}

static void note_regions(void)
{
    for (uint32_t i = 0; i < n_regions; i++) {
        regions[i].before = malloc(regions[i].bytes);
        if (!regions[i].before)
            fail("no memory");
        memcpy(regions[i].before, regions[i].memory, regions[i].bytes);
    }
}

static void print_regions(void)
{
    for (uint32_t i = 0; i < n_regions; i++) {
        printf("region %ju ", (uintmax_t)(uintptr_t)regions[i].memory);
        print_hex(regions[i].before, regions[i].bytes);
        printf(" ");
        print_hex(regions[i].memory, regions[i].bytes);
        puts("");
    }
}

static void print_launch(const struct kept_launch *launch)
{
    printf("launch %u %u %u %u\n", launch->grid[0], launch->grid[1], launch->n_threads, launch->shared_bytes);
    for (uint32_t i = 0; i < launch->n_parameters; i++) {
        printf("parameter ");
        print_hex(launch->parameters[i].bytes, launch->parameters[i].n);
        puts("");
    }
    print_regions();
}

static void run_tile(const char *format, uint32_t n_rows, uint32_t n_columns, uint32_t n_x_rows)
{
    struct device_matrix matrix;
    struct device_activations x;
    struct kept_launch launch;
    const size_t n_weights = (size_t)n_rows * n_columns, n_x = (size_t)n_x_rows * layout_padded(n_columns);
    float *weights = malloc(n_weights * sizeof *weights), *rounded = malloc(n_x * sizeof *rounded);
    if (!weights || !rounded)
        fail("no memory");
    float *out = take((size_t)n_x_rows * OUT_STRIDE * sizeof *out);
    make_matrix(format_named(format), n_rows, n_columns, &matrix, weights);
    make_activations(n_columns, n_x_rows, &x, rounded);
    note_regions();
    const struct device_product product = {&matrix, out, OUT_STRIDE};
    finish(launch_thin(device_stream(device), &product, &x, n_x_rows, &launch));
    print_launch(&launch);
    printf("weights ");
    print_hex(weights, n_weights * sizeof *weights);
    printf("\nx ");
    print_hex(rounded, n_x * sizeof *rounded);
    printf("\nstride %d\nend\n", OUT_STRIDE);
    free(weights);
    free(rounded);
}

/* Keys and values of as many blocks as the rows see, and one more in front, so that the table says something.
 */
static void run_attention(uint32_t n_heads, uint32_t dim, uint32_t n_rows, uint32_t position)
{
    const uint32_t n_blocks = (position + n_rows - 1) / BACKEND_BLOCK_TOKENS + 2;
    struct attention_step step = {.q_stride = n_heads * dim};
    struct kept_launch launch;
    step.out.stride = layout_padded(n_heads * dim);
    step.out.values = take((size_t)n_rows * step.out.stride * sizeof(float));
    step.kv = (struct device_kv){
        .type = BACKEND_KV_F16, .n_blocks = n_blocks, .n_layers = 1, .n_heads = 1, .dim = dim};
    kernels_kv_lay_out(&step.kv);
    const size_t pool_bytes = n_blocks * step.kv.block_bytes;
    uint16_t *pool = take(pool_bytes);
    for (size_t i = 0; i < pool_bytes / 2; i++)
        pool[i] = format_f32_to_f16(random_float());
    step.kv.pool = (uint8_t *)pool;
    float *q = take((size_t)n_rows * step.q_stride * sizeof *q);
    for (size_t i = 0; i < (size_t)n_rows * step.q_stride; i++)
        q[i] = 2 * random_float();
    step.q = q;
    step.scratch = (struct attention_scratch){
        .max_rows = n_rows, .n_context = ATTENTION_PIECE, .n_heads = n_heads, .n_blocks = n_blocks};
    const size_t scratch_bytes = kernels_attention_scratch(&step.kv, &step.scratch);
    step.scratch.memory = memset(take(scratch_bytes), 0, scratch_bytes);
    struct slots slots = {.n_slots = 1, .table_size = n_blocks - 1};
    slots.tables = take(slots.table_size * sizeof *slots.tables);
    for (uint32_t i = 0; i < slots.table_size; i++)
        slots.tables[i] = slots.table_size - i;
    struct step_row *rows = take(n_rows * sizeof *rows);
    for (uint32_t i = 0; i < n_rows; i++)
        rows[i] = (struct step_row){.position = position + i};
    finish(kernels_attention_plan(device_stream(device), &step.kv, &step.scratch, rows, n_rows));
    note_regions();
    finish(launch_attention(device_stream(device), &step, &slots, rows, n_rows, &launch));
    print_launch(&launch);
    puts("end");
}

static void answer(char *line)
{
    char *words[5], *rest = line;
    for (int i = 0; i < 5; i++)
        if (!(words[i] = strtok_r(rest, " \n", &rest)))
            fail("a request of five words is expected");
    if (!strcmp(words[0], "run"))
        run_primitive(words[1], (uint32_t)atoi(words[2]), words[3], words[4]);
    else if (!strcmp(words[0], "tile"))
        run_tile(words[1], (uint32_t)atoi(words[2]), (uint32_t)atoi(words[3]), (uint32_t)atoi(words[4]));
    else if (!strcmp(words[0], "attend"))
        run_attention((uint32_t)atoi(words[1]), (uint32_t)atoi(words[2]), (uint32_t)atoi(words[3]),
                      (uint32_t)atoi(words[4]));
    else
        fail("a request is run, tile or attend");
    give_back();
    fflush(stdout);
}

int main(void)
{
    struct error err = {0};
    if (device_open(0, &device, &err) < 0)
        fail(err.text);
    char *line = NULL;
    size_t size = 0;
    while (getline(&line, &size, stdin) > 0)
        answer(line);
    free(line);
    device_close(device);
    return 0;
}
