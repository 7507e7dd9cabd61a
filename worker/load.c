/* SPDX-License-Identifier: MIT */
/* Loading, in the order that confinement asks for: what looks at the machine, at names and at other processes
 * first, then what reads a stranger's bytes, then what has threads, then the engine.
 *
 *     cores ─▶ device ─▶ names of files ─▶ weights of others ─▶ sandbox ─▶ model ─▶ wait for weights
 *           ─▶ digest ─▶ preparer ─▶ engine ─▶ weights for others
 *
 * Other workers' weights are looked for by the key of the model's files, which says nothing of what is in
 * them. A driver cannot be confined, so "auto" chooses a device before the model is read: where that turns
 * out not to execute it, the model was read unconfined. */

#include "worker/load.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "model/overrides.h"
#include "engine/backend/kv_type.h"
#include "engine/backend/library_rows.h"
#include "engine/prompt_lookup.h"
#include "gguf/gguf.h"
#include "worker/load_model.h"
#include "worker/load_weights.h"

/* Bytes of the pool's prefix store; 0: there is none. */
static size_t store_bytes(const struct worker_options *options)
{
    struct stat stat;
    return options->prefix_store_fd >= 0 && fstat(options->prefix_store_fd, &stat) == 0 ? (size_t)stat.st_size
                                                                                        : 0;
}

/* ---- cores and memory ---- */

/* " on cores 0-3,8": as many of them as there is room for. */
static void list_cores(const struct binding *binding, char *text, size_t size)
{
    size_t used = 0;
    text[0] = 0;
    for (uint32_t i = 0, end; i < binding->n_cpus && used + 40 < size; i = end) {
        for (end = i + 1; end < binding->n_cpus && binding->cpus[end] == binding->cpus[end - 1] + 1;)
            end++;
        used += (size_t)snprintf(text + used, size - used, "%s%d", i ? "," : " on cores ", binding->cpus[i]);
        if (end > i + 1)
            used += (size_t)snprintf(text + used, size - used, "-%d", binding->cpus[end - 1]);
    }
}

/* What was found of the machine, and what the CPU backend computes on, if it is that which does. */
static void log_binding(const struct load *load)
{
    char machine[512], cores[256];
    topology_describe(load->topology, machine, sizeof machine);
    list_cores(&load->binding, cores, sizeof cores);
    if (load->backend.ops->self_contained && load->backend.ops->weight_packing)
        log_info("%s: %u thread%s%s", machine, load->binding.n_threads,
                 load->binding.n_threads == 1 ? "" : "s", cores);
    else
        log_info("%s", machine);
}

/* What this worker has of the machine, read while all of /sys is in reach. */
static int take_share(struct load *load, struct error *err)
{
    const struct worker_options *options = load->options;
    int r = topology_new(NULL, &load->topology, err);
    if (r < 0)
        return r;
    if (options->local_workers > 0)
        binding_decide(load->topology, options->board_slot, options->local_workers, options->threads,
                       &load->binding);
    else
        binding_decide_free(load->topology, options->threads, &load->binding);
    if (!load->topology->is_real)
        load->binding.n_cpus = 0;
    return 0;
}

/* ---- what is loaded ---- */

static void log_choice(const struct load *load)
{
    if (load->backend.note.text[0])
        log_warn("%s", load->backend.note.text);
}

/* Before there are other threads: from here on only the model, what is open already, and a little more is in
 * reach. */
static void confine_to_loading(struct load *load)
{
    struct error err;
    const struct sandbox sandbox = {(const char *const *)load->files.paths, load->files.n};
    int r = load->confined ? sandbox_confine_files(&sandbox, &err) : 0;
    if (r < 0 && r != -EBUSY)
        log_warn("file access is not confined: the worker can read every file that its user can: %s",
                 err.text);
    load->confined &= r != -EBUSY; /* "auto" has asked a driver: its threads call what they like */
    if (load->confined && sandbox_confine_calls(SANDBOX_LOADING, load->options->name, &err) < 0)
        log_debug("system calls are not confined: %s", err.text); /* said aloud at the next stage */
}

static void confine(struct load *load)
{
    load->confined = load->backend.ops->self_contained && !load->options->no_sandbox;
    confine_to_loading(load);
}

void load_confine_calls(struct load *load)
{
    struct error err;
    if (load->confined && sandbox_confine_calls(SANDBOX_SERVING, load->options->name, &err) < 0)
        log_warn("system calls are not confined: %s", err.text);
}

static void log_backend(void *arg, const char *line)
{
    log_info("%s", line);
}

static void after_part(void *arg, uint64_t done, uint64_t total)
{
    load_tell_how_far(arg, "loading", done, total);
}

static int read_library_rows(const char *text, uint32_t *ret_rows, struct error *err)
{
    int r = library_rows_by_name(text, ret_rows, err);
    return r < 0 ? error_prefix(err, r, "--cublas") : 0;
}

int load_check_names(const struct worker_options *options, struct error *err)
{
    enum backend_kv_type kv_type;
    uint32_t rows;
    int r = backend_check_name(options->device, err);
    if (r == 0 && options->kv_type)
        r = kv_type_by_name(options->kv_type, &kv_type, err);
    if (r == 0 && options->quantize)
        r = load_check_quantize(options->quantize, err);
    if (r == 0 && options->cublas)
        r = read_library_rows(options->cublas, &rows, err);
    struct sampling_defaults sampling;
    if (r == 0 && options->sampling) {
        r = sampling_defaults_set(&sampling, bytes_of_string(options->sampling), SAMPLING_OF_POOL, err);
        if (r < 0)
            error_prefix(err, r, "--sampling");
    }
    return r;
}

static int open_engine(struct load *load, struct error *err)
{
    const struct worker_options *options = load->options;
    if (options->context > load->model->params.n_context)
        log_warn("a context of %u exceeds the %u that the model was trained for", options->context,
                 load->model->params.n_context);
    uint32_t n_sharers,
        device = backend_share(&load->backend, options->board_slot, options->local_workers, &n_sharers);
    enum backend_kv_type kv_type = BACKEND_KV_DEFAULT;
    int r = options->kv_type ? kv_type_by_name(options->kv_type, &kv_type, err) : 0;
    uint32_t library_rows = 0;
    if (r < 0)
        return r;
    r = options->cublas ? read_library_rows(options->cublas, &library_rows, err) : 0;
    if (r < 0)
        return r;
    const struct engine_config config = {
        .model = load->model,
        .backend = load->backend.ops,
        .give_back = load->backend.give_back,
        .most_cached = options->cached_blocks,
        .draft = options->draft > 0 ? prompt_lookup : NULL,
        .most_draft = options->draft,
        .host_sampling = options->host_sampling ? load->backend.host_sampling : NULL,
        .differs = load->differences ? differences_log : NULL,
        .differs_arg = load->differences,
        .backend_config = {.n_slots = options->slots,
                           .n_context = options->context,
                           .n_blocks = options->kv_blocks,
                           .n_snapshots = options->snapshots,
                           .invariant = options->invariant,
                           .kv_type = kv_type,
                           .n_sharers = n_sharers,
                           .shared_bytes = load->shared_bytes + load_bytes_of_copies(load),
                           .weights = load->weights,
                           .devices = &device,
                           .n_devices = load->backend.n_devices > 0,
                           .cpu = {.n_threads = load->binding.n_threads,
                                   .cpus = load->binding.cpus,
                                   .n_cpus = load->binding.n_cpus},
                           .cuda = {.library_rows = library_rows},
                           .say = log_backend,
                           .progress = load->progress,
                           .progress_arg = load->progress_arg,
                           .loaded = after_part,
                           .loaded_arg = load}};
    if (options->host_sampling && !load->backend.host_sampling)
        log_info("--host-sampling changes nothing on %s", load->backend.ops->name);
    loading_restart(&load->loading);
    return engine_new(&config, load->sink, load->sink_arg, &load->engine, err);
}

/* Behind a comma the device tells how many threads it has, in brackets its number, of which ids do not
 * depend. They do depend on which products are a library's. */
static void know_arithmetic(struct load *load)
{
    char library[40] = "";
    const struct worker_options *options = load->options;
    const struct backend_info *info = engine_backend_info(load->engine);
    const char *number = strstr(info->device, " (GPU ");
    const int device_len = number ? (int)(number - info->device) : (int)strcspn(info->device, ",");
    if (info->choices_arithmetic > 0)
        snprintf(library, sizeof library, " cublas=%016llx", (unsigned long long)info->choices_arithmetic);
    else if (options->cublas && isdigit((unsigned char)options->cublas[0])) /* "auto" has found nothing */
        snprintf(library, sizeof library, " cublas=%.20s", options->cublas);
    snprintf(load->arithmetic, sizeof load->arithmetic, "%.*s kv=%s weights=%.16s%s%s", device_len,
             info->device, kv_type_name(info->kv_type), options->quantize ? options->quantize : "file",
             options->invariant ? " invariant" : "", library);
}

/* Of a device with a number; that it cannot be described is told where it shows. */
static void know_device(struct load *load)
{
    struct error err;
    const struct worker_options *options = load->options;
    uint32_t n_sharers;
    if (load->backend.n_devices == 0 || !load->backend.describe)
        return;
    load->device_number =
        backend_share(&load->backend, options->board_slot, options->local_workers, &n_sharers);
    if (load->backend.describe(load->device_number, &load->described, &err) < 0)
        log_warn("%s", err.text);
}

/* Without it the worker is as good, and forgets more. */
static void share_prefixes(struct load *load)
{
    struct error err;
    int fd = load->options->prefix_store_fd;
    if (fd < 0)
        return;
    if (load->options->cached_blocks > 0 && engine_share_prefixes(load->engine, fd, &err) < 0)
        log_warn("%s", err.text);
    close(fd);
}

uint32_t load_most_tokens(const struct load *load)
{
    uint32_t context = engine_context(load->engine), cache = engine_max_tokens_in_cache(load->engine);
    return context < cache ? context : cache;
}

/* Warns where clients get less than was asked for, or than the model is made for. */
static void log_shortfalls(const struct load *load)
{
    const struct model *model = load->model;
    if (model->params.pooling == POOLING_RANK && model->rank_template.len == 0)
        log_warn("the model ranks pairs of texts, but its file has no " MODEL_RANK_TEMPLATE
                 ", which says how a pair is combined: only token ids can be ranked");
    else if (model->params.pooling == POOLING_RANK)
        log_info("the model ranks pairs of texts: it cannot generate text or embeddings");
    if (load_most_tokens(load) < engine_context(load->engine))
        log_warn("the context is %u tokens instead of %u: the KV cache has room for no more",
                 load_most_tokens(load), engine_context(load->engine));
}

/* All that only a process can see that is not confined, and no byte of the model. */
static int look_around(struct load *load, struct error *err)
{
    const struct worker_options *options = load->options;
    char variant[OVERRIDES_TEXT + 64];
    snprintf(variant, sizeof variant, "%s%s%s", options->quantize ? options->quantize : "",
             options->overrides ? "\n" : "", options->overrides ? options->overrides : "");
    int r = take_share(load, err);
    if (r == 0)
        r = backend_choose(options->device, NULL, &load->backend, err);
    if (r == 0)
        r = model_files_find(options->model, variant[0] ? variant : NULL, &load->files, err);
    if (r == 0)
        r = load_read_template(load, err);
    if (r < 0)
        return r;
    load_open_weights(load);
    digest_open(&load->digest, load->files.key, load->files.settled && load->files.n > 0);
    return 0;
}

/* A device that does not execute the model: where "auto" chose it, the CPU does. */
static void check_backend(struct load *load)
{
    const struct backend_ops *ops = load->backend.ops;
    struct error why;
    if (load->backend.is_auto && ops->check && ops->check(load->model, &why) < 0 &&
        backend_fall_back(&load->backend, &why)) {
        load->weights = weight_store_free(load->weights);
        load_open_weights(load);
        confine(load);
    }
    log_choice(load);
}

/* Files that were changed between a look at them and their opening may have the key of others: then what is
 * known of those counts for nothing. */
static void check_files(struct load *load)
{
    if (!model_files_changed(&load->files))
        return;
    load->weights = weight_store_free(load->weights);
    digest_close(&load->digest);
    digest_open(&load->digest, load->files.key, false);
    model_files_deinit(&load->files); /* for another backend too */
}

static int read_model(struct load *load, struct error *err)
{
    int r = load_open_model(load, err);
    load->progress(load->progress_arg); /* others may wait for its weights already */
    if (r == 0)
        r = load_open_encoder(load, err);
    if (r < 0)
        return r;
    check_backend(load);
    check_files(load);
    return 0;
}

int load_run(struct load *load, struct error *err)
{
    load->shared_bytes = store_bytes(load->options);
    int r = look_around(load, err);
    if (r < 0)
        return r;
    confine(load);
    r = read_model(load, err);
    if (r < 0)
        return r;
    load_wait_for_weights(load);
    /* Both before the engine, which keeps the thread that opens it on one core. */
    r = load_begin_digest(load, err);
    if (r < 0)
        return r;
    r = preparer_new(&load->encoder, true, &load->preparer, err);
    if (r < 0)
        return r;
    r = open_engine(load, err);
    if (r < 0 && backend_fall_back(&load->backend, err)) {
        log_choice(load);
        r = load_reopen_weights(load, err);
        if (r == 0)
            r = open_engine(load, err);
    }
    if (r == 0)
        r = load_finish_digest(load, err);
    if (r == 0) { /* the store of weights has been told the file's own digest */
        know_arithmetic(load);
        know_device(load);
        model_mark_stretched(load->model, engine_context(load->engine));
        share_prefixes(load);
    }
    if (r == 0)
        r = load_finish_weights(load, err);
    if (r < 0)
        return r;
    model_let_go(load->model);
    prompt_encoder_bound(&load->encoder, load_most_tokens(load));
    log_shortfalls(load);
    log_binding(load); /* now, because what cannot be loaded is to be one line */
    return 0;
}

/* No driver was asked for anything, so this process can be confined whatever the device. */
int load_check(struct load *load, struct error *err)
{
    const struct worker_options *options = load->options;
    load->only_checks = true;
    int r = load_check_names(options, err);
    if (r == 0)
        r = model_files_find(options->model, NULL, &load->files, err);
    if (r == 0)
        r = load_read_template(load, err);
    if (r < 0)
        return r;
    load->confined = !options->no_sandbox;
    confine_to_loading(load);
    r = load_open_model(load, err);
    return r < 0 ? r : load_open_encoder(load, err);
}

bool load_may_pass(int r)
{
    return r == -ENOMEM || r == -ESTALE || r == -EIO || r == -ETIMEDOUT || r == -EMFILE || r == -ENFILE ||
           r == -EAGAIN || r == -ENOSPC;
}

void load_progress(struct load *load)
{
    if (load->weights)
        weight_store_progress(load->weights);
}

void load_close(struct load *load)
{
    engine_free(load->engine);
    weight_store_free(load->weights);
    prompt_encoder_deinit(&load->encoder);
    digest_close(&load->digest);
    model_free(load->model);
    model_files_deinit(&load->files);
    buffer_deinit(&load->chat_template);
    topology_free(load->topology);
}

/* ---- what it says of itself ---- */

/* "; WHAT of 12.5 MiB" behind what is there; large numbers without a power of ten. */
static void add_mib(char *text, size_t size, const char *what, uint64_t bytes)
{
    const double mib = (double)bytes / (1 << 20);
    const size_t used = strlen(text);
    snprintf(text + used, size - used, mib < 1000 ? "%s%s of %.4g MiB" : "%s%s of %.0f MiB",
             used > 0 ? "; " : "", what, mib);
}

const char *load_describe_memory(const struct load *load, char *text, size_t size)
{
    const struct backend_info *info = engine_backend_info(load->engine);
    uint32_t context = engine_context(load->engine), most = engine_max_tokens_in_cache(load->engine);
    uint32_t n = UINT32_MAX;
    for (uint32_t g = 0; g < info->n_groups; g++) {
        uint32_t fit = info->groups[g].n_blocks / backend_held_blocks(&info->groups[g], context);
        n = fit < n ? fit : n;
    }
    text[0] = 0;
    add_mib(text, size, "KV cache", backend_kv_bytes(info));
    const size_t used = strlen(text);
    snprintf(text + used, size - used, ": %u sequence%s of %u tokens", n > 1 ? n : 1, n > 1 ? "s" : "",
             most < context ? most : context);
    if (load->weights && weight_store_bytes(load->weights) > 0)
        add_mib(text, size, "shared weights", weight_store_bytes(load->weights));
    if (load->shared_bytes > 0)
        add_mib(text, size, "prefix store", load->shared_bytes);
    if (!load->backend.ops->self_contained) /* memory that nobody else shows */
        add_mib(text, size, "device memory", info->memory_bytes);
    return text;
}
