/* SPDX-License-Identifier: MIT */
/* Times are the device's own, noted in the queue around a turn of launches. The rule's way is timed too, and
 * stays where no other is clearly faster: choices are then the same at the next start, and on the next
 * device.
 */

#include "cuda/choose/measure.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/wait.h"
#include "cuda/kernels/layout.h"

#define MOST_PLACES 8  /* layers in which a launch is timed */
#define TURNS       4  /* of which the first counts for nothing */
#define TURNS_EMU   1  /* an emulated clock measures the same each time, the first too */
#define CLEARLY     32 /* faster by more than this part */
#define WARM_NS     (50 * (uint64_t)1000000)
#define WARM_ROWS   64
#define LEAST_NS    50 /* of a turn: shorter is no time that an event tells apart */

/* A launch, and where it is made: in up to so many layers. */
struct measured_launch {
    struct device_product products[MOST_PLACES][CHOICES_TOGETHER];
    uint32_t n_places;
    uint32_t n_layers; /* in all */
    struct device_activations x;
    uint32_t most_rows;
    size_t bytes; /* of the matrices in one place */
};

/* ---- launches ---- */

static size_t bytes_of(const struct device_matrix *matrix)
{
    const struct layout *layout = layout_of(matrix->format);
    return layout ? layout_bytes(layout, matrix->n_rows, matrix->n_columns) : 0;
}

static struct choices_launch describe(const struct device_product *products, uint32_t n)
{
    struct choices_launch launch = {.n = n};
    for (uint32_t i = 0; i < n; i++) {
        const struct device_matrix *matrix = products[i].matrix;
        launch.matrices[i] = (struct choices_matrix){.n_rows = matrix->n_rows,
                                                     .n_columns = matrix->n_columns,
                                                     .format = (uint8_t)matrix->format,
                                                     .has_bias = matrix->bias != NULL};
    }
    return launch;
}

/* Of the same matrices, from the same rows to the same places. */
static bool is_same(const struct measured_launch *launch, const struct choices_launch *known,
                    const struct choices_launch *met, const struct device_product *products,
                    const struct device_activations *x)
{
    if (known->n != met->n || memcmp(known->matrices, met->matrices, sizeof met->matrices) != 0 ||
        launch->x.values != x->values || launch->x.quants != x->quants)
        return false;
    for (uint32_t i = 0; i < met->n; i++)
        if (launch->products[0][i].out != products[i].out)
            return false;
    return true;
}

/* The matrix that is not const: of the model's weights. */
static struct device_matrix *own(const struct measure *measure, const struct device_matrix *matrix)
{
    struct device_weights *weights = measure->weights;
    for (uint32_t l = 0; l < measure->pass->model->params.n_layers; l++) {
        struct device_matrix *first = weights->layers[l].matrices;
        if (matrix >= first && matrix < first + TENSOR_ROLES)
            return first + (matrix - first);
    }
    return matrix == &weights->output             ? &weights->output
           : matrix == &weights->layer_projection ? &weights->layer_projection
                                                  : NULL;
}

static void add_place(struct measured_launch *launch, const struct device_product *products, uint32_t n)
{
    launch->n_layers++;
    if (launch->n_places < MOST_PLACES)
        memcpy(launch->products[launch->n_places++], products, n * sizeof *products);
}

static void meet(void *arg, const struct device_product *products, uint32_t n,
                 const struct device_activations *x)
{
    struct measure *measure = arg;
    struct choices *choices = measure->choices;
    const struct workspace *w = measure->pass->workspace;
    struct device_matrix *first = own(measure, products->matrix);
    if (!first || first->launch > 0 || n > CHOICES_TOGETHER || first->n_rows == 0)
        return;
    const struct choices_launch met = describe(products, n);
    uint32_t i = 0;
    while (i < choices->n_launches &&
           !is_same(&measure->launches[i], &choices->launches[i], &met, products, x))
        i++;
    if (i == CHOICES_LAUNCHES)
        return;
    struct measured_launch *launch = &measure->launches[i];
    if (i == choices->n_launches) {
        choices->launches[choices->n_launches++] = met;
        launch->x = *x;
        launch->most_rows = products->out == w->logits ? w->max_outputs : w->max_rows;
        for (uint32_t p = 0; p < n; p++)
            launch->bytes += bytes_of(products[p].matrix);
    }
    add_place(launch, products, n);
    first->launch = i + 1;
}

/* Of more rows than a way depends on. */
static int meet_all(struct measure *measure)
{
    const struct pass_meets meets = {meet, measure};
    struct device_stream *stream = device_stream(measure->device);
    struct device_graph *graph = NULL;
    struct pass pass = *measure->pass;
    const uint32_t n = pass.workspace->max_outputs < pass.workspace->max_rows ? pass.workspace->max_outputs
                                                                              : pass.workspace->max_rows;
    pass.meets = &meets;
    pass.large_from = UINT32_MAX;
    int r = device_record(stream);
    if (r < 0)
        return r == -EINVAL || r == -ENOMEM ? -ENOTSUP : r;
    int queued = pass_layers(&pass, stream, n);
    if (queued == 0)
        queued = pass_logits(&pass, stream, 0, n);
    r = device_record_end(stream, &graph); /* after a failure too: the queue must run again */
    device_graph_free(graph);
    if (r == -EINVAL || r == -ENOMEM)
        return -ENOTSUP;
    return r < 0 ? r : queued;
}

int measure_init(struct measure *measure, const struct pass *pass, struct device *device,
                 struct device_weights *weights, uint32_t max_rows, struct choices *choices)
{
    *measure = (struct measure){.pass = pass,
                                .device = device,
                                .weights = weights,
                                .max_rows = max_rows,
                                .choices = choices,
                                .launches = calloc(CHOICES_LAUNCHES, sizeof *measure->launches)};
    choices->n_launches = 0;
    return measure->launches ? meet_all(measure) : -ENOMEM;
}

void measure_deinit(struct measure *measure)
{
    free(measure->launches);
    measure->launches = NULL;
}

/* ---- timing ---- */

static int queue_launch(const struct measure *measure, const struct measured_launch *launch, uint32_t place,
                        uint32_t n_products, const struct multiply_step *step)
{
    struct device_stream *stream = device_stream(measure->device);
    const struct device_product *products = launch->products[place];
    return step->way == PRODUCT_LIBRARY ? library_products_multiply(measure->pass->large, stream, products,
                                                                    n_products, &launch->x, step)
                                        : kernels_multiply(stream, products, n_products, &launch->x, step);
}

/* Places whose weights the L2 cache does not hold all together. */
static uint32_t places_of(const struct measure *measure, const struct measured_launch *launch)
{
    const size_t cache = device_properties(measure->device)->l2_bytes;
    uint32_t n = 1;
    while (n < launch->n_places && n * launch->bytes <= 2 * cache)
        n++;
    return n;
}

static bool is_real(const struct measure *measure)
{
    return device_properties(measure->device)->query_us > 0;
}

static bool is_late(const struct measure *measure)
{
    return device_clock_ns(measure->device) >= measure->end_ns;
}

/* The most rows that a step has of a launch: its workspace has no more. */
static uint32_t most_rows(const struct measure *measure, uint32_t i)
{
    const uint32_t most = measure->launches[i].most_rows;
    return most < measure->max_rows ? most : measure->max_rows;
}

/* A launch of the i-th kind with so many rows, in one way; *ret_ns > 0 of one launch. -EAGAIN: the time is
 * over. */
static int time_way(const struct measure *measure, uint32_t i, uint32_t n_rows, enum product_way way,
                    uint32_t *ret_ns)
{
    const struct measured_launch *launch = &measure->launches[i];
    const struct multiply_step step = {n_rows, false, &measure->pass->workspace->multiply, way};
    struct device_stream *stream = device_stream(measure->device);
    const uint32_t n_places = places_of(measure, launch);
    const uint32_t turns = is_real(measure) ? TURNS : TURNS_EMU;
    uint64_t best = UINT64_MAX, ns = 0;
    int r = 0;
    assert(n_rows <= most_rows(measure, i));
    for (uint32_t turn = 0; turn < turns && r == 0; turn++) {
        r = is_late(measure) ? -EAGAIN : device_note_time(stream, 0);
        for (uint32_t place = 0; place < n_places && r == 0; place++)
            r = queue_launch(measure, launch, place, measure->choices->launches[i].n, &step);
        if (r == 0)
            r = device_note_time(stream, 1);
        if (r == 0)
            r = device_mark(stream, MARK_TIMES);
        if (r == 0)
            r = device_wait_due(measure->device, MARK_TIMES);
        if (r == 0)
            r = device_time_between(stream, &ns);
        if (r == 0 && (turn > 0 || turns == 1) && ns < best)
            best = ns;
    }
    if (measure->config && measure->config->progress)
        measure->config->progress(measure->config->progress_arg);
    if (r < 0)
        return r;
    best = (best > LEAST_NS ? best : LEAST_NS) / n_places;
    *ret_ns = best < UINT32_MAX ? (uint32_t)best : UINT32_MAX;
    return 0;
}

/* Does it exist for that many rows? Thin tiles for more than a few of them read all weights that often. */
static bool has_way(const struct measure *measure, uint32_t i, uint32_t n_rows, enum product_way way)
{
    const struct pass *pass = measure->pass;
    const struct measured_launch *launch = &measure->launches[i];
    switch (way) {
    case PRODUCT_THIN_8:
        return n_rows <= 16;
    case PRODUCT_THIN_16:
        return n_rows > 8 && n_rows <= 128;
    case PRODUCT_WIDE:
    case PRODUCT_SHARED:
        return n_rows > 8;
    case PRODUCT_LIBRARY:
        for (uint32_t p = 0; p < measure->choices->launches[i].n; p++)
            if (pass->large_by_choice && n_rows > BACKEND_LEAST_LIBRARY_ROWS &&
                n_rows <= pass->large->most_rows &&
                library_products_takes(pass->large, &launch->products[0][p], launch->x.stride))
                return true;
        return false;
    case PRODUCT_BY_RULE:
    case PRODUCT_WAYS:
        break;
    }
    return false;
}

/* Of those before `end` that were timed, with the rule's among them. */
static enum product_way fastest(const struct choices_bucket *bucket, enum product_way end)
{
    enum product_way way = bucket->rule;
    for (enum product_way other = PRODUCT_THIN_8; other < end; other++)
        if (other != way && bucket->ns[other] > 0 &&
            (uint64_t)bucket->ns[other] * (CLEARLY + (way == bucket->rule)) <
                (uint64_t)bucket->ns[way] * CLEARLY)
            way = other;
    return way;
}

/* All ways of a bucket, or none where the time is over. */
static int time_bucket(const struct measure *measure, uint32_t i, uint32_t b)
{
    const struct measured_launch *launch = &measure->launches[i];
    struct choices_launch *choices = &measure->choices->launches[i];
    struct choices_bucket *bucket = &choices->buckets[b];
    const uint32_t most = most_rows(measure, i), n_rows = choices_rows(b) < most ? choices_rows(b) : most;
    if (n_rows <= KERNELS_GEMV || (b > 0 && n_rows <= choices_rows(b - 1)))
        return 0;
    bucket->rule = (uint8_t)kernels_multiply_rule(launch->products[0], choices->n, n_rows,
                                                  &measure->pass->workspace->multiply);
    int r = 0;
    for (enum product_way way = PRODUCT_THIN_8; way < PRODUCT_WAYS && r == 0; way++)
        if (way == bucket->rule || has_way(measure, i, n_rows, way))
            r = time_way(measure, i, n_rows, way, &bucket->ns[way]);
    if (r == 0) {
        bucket->way = (uint8_t)fastest(bucket, PRODUCT_WAYS);
        bucket->own = (uint8_t)fastest(bucket, PRODUCT_LIBRARY);
    }
    if (r != -EAGAIN)
        return r;
    memset(bucket->ns, 0, sizeof bucket->ns);
    measure->choices->complete = 0;
    return 0;
}

/* The launch that reads the most of those that are left; n: none is. */
static uint32_t next_of(const struct measure *measure, const bool *done)
{
    const uint32_t n = measure->choices->n_launches;
    uint32_t next = n;
    size_t most = 0;
    for (uint32_t i = 0; i < n; i++) {
        const size_t bytes = measure->launches[i].bytes * measure->launches[i].n_layers;
        if (!done[i] && (next == n || bytes > most)) {
            next = i;
            most = bytes;
        }
    }
    return next;
}

/* An idle GPU's clocks rise when it works. Until then the ways that are timed first would seem slower than
 * they are. An emulated one is as fast at once, and does this once. */
static int warm_up(const struct measure *measure, uint32_t i)
{
    const uint64_t begun = device_clock_ns(measure->device);
    const bool rises = is_real(measure);
    uint32_t unused;
    if (i == measure->choices->n_launches)
        return 0;
    const uint32_t n_rows = most_rows(measure, i) < WARM_ROWS ? most_rows(measure, i) : WARM_ROWS;
    int r;
    do
        r = time_way(measure, i, n_rows, PRODUCT_BY_RULE, &unused);
    while (r == 0 && rises && device_clock_ns(measure->device) - begun < WARM_NS);
    return r == -EAGAIN ? 0 : r;
}

int measure_run(struct measure *measure, uint64_t budget_ns)
{
    const uint64_t begun = device_clock_ns(measure->device);
    struct choices *choices = measure->choices;
    bool done[CHOICES_LAUNCHES] = {false};
    choices->complete = 1;
    measure->end_ns = begun + budget_ns;
    int r = warm_up(measure, next_of(measure, done));
    for (uint32_t i = next_of(measure, done); i < choices->n_launches && r == 0; i = next_of(measure, done)) {
        done[i] = true;
        for (uint32_t b = 0; b < CHOICES_BUCKETS && r == 0; b++)
            r = time_bucket(measure, i, b);
    }
    choices->measured_ns = device_clock_ns(measure->device) - begun;
    return r;
}
