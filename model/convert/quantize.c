/* SPDX-License-Identifier: MIT */
/* Quantizing a whole file.
 *
 * The writer asks for one tensor after the other. Its rows are shared out to threads in small batches by an
 * atomic counter; a thread makes them if no file has them in this form, turns each into floats and those into
 * blocks of the mapped output, and gives back what it made. Rows are
 * independent, so the result does not depend on the threads. At most MAX_THREADS live, only while one tensor
 * is made. */

#include "model/convert/quantize.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "common/system/topology.h"
#include "common/utf8.h"
#include "model/hyperparameters.h"
#include "model/model.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_writer.h"

#define MAX_THREADS 64
#define BATCH_ROWS  64

#define IN_MEMORY_ALIGNMENT 64

struct quantizer {
    const struct gguf *gguf;
    struct gguf_writer *writer;
    const struct quantize_options *options;
    unsigned n_threads;
    quantize_progress *progress;
    void *progress_arg;
    bool in_file;      /* from one to another, as the command does */
    struct error *why; /* a row could not be made; no text: all could */
};

struct plan { /* of one tensor: what `fill` gets */
    const struct quantizer *quantizer;
    const struct gguf_tensor *from;
    enum format format, wanted;
    uint32_t
        head_dim; /* rows of heads of this size stand by halves and are to stand by pairs; 0: as they are */
    size_t i;
};

struct job { /* a tensor under work, shared by threads */
    const struct plan *plan;
    uint8_t *out;
    uint64_t n_rows;
    size_t in_bytes, out_bytes; /* of a row */
    atomic_uint_fast64_t next_row;
    atomic_int result;
};

static void fail(struct job *job, int r, const struct error *err)
{
    int none = 0;
    if (atomic_compare_exchange_strong(&job->result, &none, r))
        *job->plan->quantizer->why = *err;
}

/* Where a row of a head that is turned by pairs stands in one that is turned by halves. */
static uint64_t row_by_halves(uint32_t dim, uint64_t row)
{
    if (dim == 0)
        return row;
    const uint64_t at = row % dim;
    return row - at + at % 2 * (dim / 2) + at / 2;
}

/* The rows of a batch stand together in the tensor: they are made by whom converts them. */
static bool is_made_by_batches(const struct plan *plan)
{
    return plan->from->maker && plan->head_dim == 0;
}

static void convert_row(const struct job *job, uint64_t r, float *row)
{
    const struct gguf_tensor *from = job->plan->from;
    const enum format format = job->plan->format;
    const uint8_t *in = (const uint8_t *)from->data + row_by_halves(job->plan->head_dim, r) * job->in_bytes;
    uint8_t *out = job->out + r * job->out_bytes;
    if (from->format == format) {
        memcpy(out, in, job->in_bytes);
        return;
    }
    format_traits(from->format)->to_float(in, row, from->dims[0]);
    format_traits(format)->from_float(row, out, from->dims[0]);
}

static void *work(void *arg)
{
    struct job *job = arg;
    const struct plan *plan = job->plan;
    const struct gguf_tensor *from = plan->from;
    struct error err = {0};
    float *row = malloc(from->dims[0] * sizeof *row);
    if (!row)
        fail(job, -ENOMEM, &err);
    while (atomic_load(&job->result) == 0) {
        uint64_t first = atomic_fetch_add(&job->next_row, BATCH_ROWS);
        if (first >= job->n_rows)
            break;
        uint64_t end = first + BATCH_ROWS < job->n_rows ? first + BATCH_ROWS : job->n_rows;
        int r = is_made_by_batches(plan) ? gguf_make_rows(from, first, end - first, 1, &err) : 0;
        if (r < 0) {
            fail(job, r, &err);
            break;
        }
        for (uint64_t i = first; i < end; i++)
            convert_row(job, i, row);
        if (is_made_by_batches(plan))
            gguf_give_back(plan->quantizer->gguf, (const uint8_t *)from->data + first * job->in_bytes,
                           (end - first) * job->in_bytes);
    }
    free(row);
    return NULL;
}

static int convert(const struct plan *plan, void *out)
{
    const struct gguf_tensor *from = plan->from;
    struct job job = {.plan = plan, .out = out, .n_rows = from->dims[1] * from->dims[2] * from->dims[3]};
    job.in_bytes = format_bytes(from->format, from->dims[0]);
    job.out_bytes = format_bytes(plan->format, from->dims[0]);
    pthread_t threads[MAX_THREADS];
    unsigned n = 0;
    /* The caller works too; threads that cannot be had only make it slower. */
    while (n + 1 < plan->quantizer->n_threads && pthread_create(&threads[n], NULL, work, &job) == 0)
        n++;
    work(&job);
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return atomic_load(&job.result);
}

static int fill(void *arg, void *out, size_t size)
{
    const struct plan *plan = arg;
    const struct quantizer *quantizer = plan->quantizer;
    struct quantize_step step = {
        plan->i, gguf_n_tensors(quantizer->gguf), plan->from, plan->format, plan->wanted, size};
    if (quantizer->progress)
        quantizer->progress(quantizer->progress_arg, &step);
    int r = is_made_by_batches(plan) ? 0 : gguf_make_tensor(plan->from, quantizer->n_threads, quantizer->why);
    if (r < 0)
        return r;
    if (plan->from->n_dims == 1 && plan->head_dim > 0 && plan->format == FORMAT_F32) { /* a bias: elements */
        const float *in = plan->from->data;
        for (uint64_t i = 0; i < plan->from->dims[0]; i++)
            ((float *)out)[i] = in[row_by_halves(plan->head_dim, i)];
    } else if (plan->format == plan->from->format && plan->head_dim == 0 && !plan->from->maker) {
        memcpy(out, plan->from->data, size);
    } else {
        r = convert(plan, out);
    }
    gguf_give_back_tensor(quantizer->gguf, plan->from);
    /* Whatever was read until now is of the files as they were opened. */
    return r < 0 || !quantizer->in_file ? r : gguf_check_unchanged(quantizer->gguf, quantizer->why);
}

static bool is_real(enum format format)
{
    return format == FORMAT_F32 || format == FORMAT_F16 || format == FORMAT_BF16;
}

static bool begins_with(struct bytes text, const char *start)
{
    return text.len >= strlen(start) && memcmp(text.data, start, strlen(start)) == 0;
}

static bool ends_with(struct bytes text, const char *end)
{
    const size_t len = strlen(end);
    return text.len >= len && memcmp((const char *)text.data + text.len - len, end, len) == 0;
}

/* All but what describes the old file. */
static int copy_metadata(const struct gguf *gguf, const struct mixture *mixture, struct gguf_writer *writer)
{
    int r = 0;
    for (size_t i = 0; i < gguf_n_pairs(gguf) && r == 0; i++) {
        const struct gguf_pair *pair = gguf_pair_at(gguf, i);
        if (begins_with(pair->key, "split.") || bytes_equal(pair->key, BYTES_LITERAL("general.file_type")) ||
            bytes_equal(pair->key, BYTES_LITERAL("general.quantization_version")) ||
            begins_with(pair->key, "quern.") || ends_with(pair->key, "." HYPERPARAMETERS_ROPE_HALVES))
            continue;
        r = gguf_writer_pair(writer, pair);
    }
    if (r == 0)
        r = gguf_writer_u32(writer, "general.quantization_version", 2);
    return r < 0 ? r : gguf_writer_u32(writer, "general.file_type", mixture->file_type);
}

/* Experts of gpt-oss are published in MXFP4: they stay what they are, as its files in GGUF have them. */
static bool stays(const struct quantize_options *options, const struct gguf_tensor *tensor)
{
    return tensor->format == FORMAT_MXFP4 && tensor->n_dims == 3 && !options->requantize;
}

/* The formats of all tensors. */
static int decide(const struct quantizer *quantizer, const struct mixture *mixture, struct plan *plans,
                  struct error *err)
{
    const struct gguf *gguf = quantizer->gguf;
    char head[TENSOR_NAME_SIZE];
    bool tied = !gguf_find_tensor(gguf, tensor_name(TENSOR_OUTPUT, 0, false, head));
    uint32_t n_layers = hyperparameters_layers(gguf), halves = hyperparameters_halves(gguf);
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *from = gguf_tensor_at(gguf, i);
        char name[256];
        utf8_printable(from->name, sizeof name, name);
        if (from->name.len >= sizeof name)
            return error_set(err, -EINVAL, "the name of tensor %s is too long", name);
        const struct format_traits *traits = format_traits(from->format);
        const bool is_kept = stays(quantizer->options, from);
        if (!is_real(from->format) && !is_kept && !(quantizer->options->requantize && traits->to_float))
            return error_set(err, -EINVAL, "tensor %s is already %s; quantize from F32, F16 or BF16%s", name,
                             traits->name, quantizer->in_file ? ", or use --requantize" : "");
        plans[i] = (struct plan){.quantizer = quantizer, .from = from, .i = i};
        struct mixture_tensor tensor = {.role = TENSOR_ROLES,
                                        .n_layers = n_layers,
                                        .n_dims = from->n_dims,
                                        .columns = from->dims[0],
                                        .tied = tied};
        bool bias = false;
        tensor_role_of(from->name, &tensor.role, &tensor.layer, &bias);
        if (bias) /* experts have a row of them each */
            tensor.n_dims = 1;
        plans[i].format = is_kept ? from->format : mixture_format(mixture, &tensor);
        plans[i].wanted = is_kept ? from->format : mixture_wants(mixture, &tensor);
        plans[i].head_dim = tensor.role == TENSOR_Q || tensor.role == TENSOR_K ? halves : 0;
    }
    return 0;
}

int quantize_check(const struct gguf *gguf, const struct mixture *mixture,
                   const struct quantize_options *options, struct error *err)
{
    const struct quantizer quantizer = {.gguf = gguf, .options = options};
    struct plan *plans = calloc(gguf_n_tensors(gguf) + 1, sizeof *plans);
    int r = plans ? decide(&quantizer, mixture, plans, err) : error_set(err, -ENOMEM, "out of memory");
    free(plans);
    return r;
}

static int announce_tensors(const struct quantizer *quantizer, struct plan *plans)
{
    for (size_t i = 0; i < gguf_n_tensors(quantizer->gguf); i++) {
        const struct gguf_tensor *from = plans[i].from;
        char name[256];
        int r = gguf_writer_tensor(quantizer->writer, utf8_printable(from->name, sizeof name, name),
                                   from->n_dims, from->dims, plans[i].format, fill, &plans[i]);
        if (r < 0)
            return r;
    }
    return 0;
}

static unsigned pick_threads(unsigned wanted)
{
    unsigned n = wanted ? wanted : topology_threads_here();
    return n < MAX_THREADS ? n : MAX_THREADS;
}

int quantize_file(const char *in, const struct mixture *mixture, const char *out,
                  const struct quantize_options *options, quantize_progress *progress, void *progress_arg,
                  struct error *err)
{
    struct gguf *gguf = NULL;
    struct plan *plans = NULL;
    struct error why = {0};
    struct quantizer quantizer = {.options = options,
                                  .in_file = true,
                                  .why = &why,
                                  .n_threads = pick_threads(options->n_threads),
                                  .progress = progress,
                                  .progress_arg = progress_arg};
    int r = model_open_files(in, &gguf, err);
    if (r < 0)
        return r;
    quantizer.gguf = gguf;
    r = gguf_check_output(gguf, out, err);
    if (r < 0) {
        gguf_free(gguf);
        return r;
    }
    plans = calloc(gguf_n_tensors(gguf) + 1, sizeof *plans);
    r = plans ? gguf_writer_new(&quantizer.writer) : -ENOMEM;
    if (r == 0)
        r = copy_metadata(gguf, mixture, quantizer.writer);
    if (r == 0)
        r = decide(&quantizer, mixture, plans, err);
    if (r == 0)
        r = announce_tensors(&quantizer, plans);
    if (r < 0)
        error_prefix(err, r, "%s", in);
    else
        r = gguf_writer_write(quantizer.writer, out, err);
    if (why.text[0])
        error_set(err, r, "%s", why.text);
    gguf_writer_free(quantizer.writer);
    free(plans);
    gguf_free(gguf);
    return r;
}

static size_t padded(size_t size)
{
    return (size + IN_MEMORY_ALIGNMENT - 1) / IN_MEMORY_ALIGNMENT * IN_MEMORY_ALIGNMENT;
}

int quantize_in_memory(struct gguf *gguf, const struct mixture *mixture,
                       const struct quantize_options *options, quantize_progress *progress,
                       void *progress_arg, struct error *err)
{
    struct error why = {0};
    const struct quantizer quantizer = {.gguf = gguf,
                                        .options = options,
                                        .why = &why,
                                        .n_threads = pick_threads(options->n_threads),
                                        .progress = progress,
                                        .progress_arg = progress_arg};
    const size_t n = gguf_n_tensors(gguf);
    size_t size = 0;
    void *memory = NULL;
    struct plan *plans = calloc(n + 1, sizeof *plans);
    int r = plans ? decide(&quantizer, mixture, plans, err) : -ENOMEM;
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct gguf_tensor *from = plans[i].from;
        plans[i].head_dim = 0;
        if (plans[i].format != from->format)
            size += padded(
                format_bytes(plans[i].format, from->dims[0] * from->dims[1] * from->dims[2] * from->dims[3]));
    }
    if (r == 0 && gguf_add_memory(gguf, size, &memory) < 0)
        r = error_set(err, -ENOMEM, "not enough memory for %s of quantized weights",
                      amount_of_bytes(size).text);
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct gguf_tensor from = *plans[i].from;
        if (plans[i].format == from.format)
            continue;
        const size_t bytes =
            format_bytes(plans[i].format, from.dims[0] * from.dims[1] * from.dims[2] * from.dims[3]);
        r = fill(&plans[i], memory, bytes);
        if (r < 0)
            error_set(err, r, "%s", why.text[0] ? why.text : strerror(-r));
        gguf_replace_tensor(gguf, i, plans[i].format, memory);
        memory = (uint8_t *)memory + padded(bytes);
    }
    if (r == 0)
        gguf_set_variant(gguf, mixture->name);
    free(plans);
    return r;
}
