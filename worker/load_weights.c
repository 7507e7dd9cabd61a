/* SPDX-License-Identifier: MIT */
/* See load_weights.h.
 *
 * Other workers' weights are found by a key of the model's files, which says nothing of their contents; the
 * digest does, once it is known. */

#include "worker/load_weights.h"

#include <string.h>

#include "common/amount.h"
#include "common/log.h"
#include "common/system/available.h"
#include "gguf/gguf.h"

uint64_t load_bytes_of_tensors(const struct gguf *gguf)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++)
        bytes += gguf_tensor_at(gguf, i)->size;
    return bytes;
}

static void prefer_node(void *arg, uint32_t node)
{
    topology_prefer_node(arg, node == WEIGHT_STORE_ANY_NODE ? TOPOLOGY_ANY_NODE : node);
}

/* Where the weights are to lie: in memory near the cores that read them. The model's files tell how large
 * they are, though they may be made smaller while they are read. */
static struct weight_store_place place_weights(struct load *load)
{
    const struct worker_options *options = load->options;
    struct available available = {.total = UINT64_MAX};
    available_read("", &available);
    binding_place_weights(load->topology, &load->binding, options->local_workers, options->threads,
                          load->files.bytes, available.total, &load->placing);
    return (struct weight_store_place){
        .nodes = load->placing.nodes, .prefer = prefer_node, .arg = load->topology};
}

uint64_t load_bytes_of_copies(const struct load *load)
{
    return load->placing.n_copies > 1
               ? (load->placing.n_copies - 1) * load_bytes_of_tensors(load->model->gguf)
               : 0;
}

#define ALONE "%s: this worker packs its own copy of the weights"

void load_open_weights(struct load *load)
{
    const struct backend_ops *ops = load->backend.ops;
    if (!ops->self_contained && load->options->local_workers < 2)
        return;
    struct weight_store_file file = {.packing = ops->weight_packing ? ops->weight_packing() : 0,
                                     .settled = load->files.settled};
    struct error err;
    if (ops->self_contained)
        file.place = place_weights(load);
    if (!ops->weight_packing || load->files.n == 0)
        return;
    memcpy(file.key, load->files.key, sizeof file.key);
    if (weight_store_open(&file, &load->weights, &err) < 0)
        log_warn(ALONE, err.text);
}

void load_wait_for_weights(struct load *load)
{
    struct error err;
    if (!load->weights || weight_store_wait(load->weights, load->progress, load->progress_arg, &err) == 0)
        return;
    log_warn(ALONE, err.text);
    load->weights = weight_store_free(load->weights);
}

/* What is known by now: the store looks by it for segments, and shows its own with it. */
static void tell_digest(struct load *load)
{
    const uint8_t *digest = digest_known(&load->digest);
    if (digest && load->weights)
        weight_store_know(load->weights, digest);
}

int load_begin_digest(struct load *load, struct error *err)
{
    int r = digest_begin(&load->digest, load->model, load->weights, load->binding.n_threads, load->progress,
                         load->progress_arg, err);
    if (r == 0)
        tell_digest(load);
    return r;
}

int load_finish_digest(struct load *load, struct error *err)
{
    int r = digest_finish(&load->digest, load->progress, load->progress_arg, err);
    if (r == 0)
        tell_digest(load);
    return r;
}

int load_reopen_weights(struct load *load, struct error *err)
{
    int r = digest_finish(&load->digest, load->progress, load->progress_arg, err);
    if (r < 0)
        return r;
    load->weights = weight_store_free(load->weights);
    load_open_weights(load);
    load_wait_for_weights(load);
    tell_digest(load);
    return 0;
}

int load_finish_weights(struct load *load, struct error *err)
{
    struct error sealing;
    int r = gguf_check_unchanged(load->model->gguf, err);
    if (r < 0)
        return r;
    digest_keep(&load->digest);
    digest_close(&load->digest); /* strangers' texts come after this, and find no file open */
    if (!load->weights)
        return 0;
    if (weight_store_publish(load->weights, &sealing) < 0)
        log_warn("%s", sealing.text);
    const char *whose = weight_store_is_found(load->weights) ? "another worker's" : "shared with others";
    log_debug("weights: %s, %s", amount_of_bytes(weight_store_bytes(load->weights)).text, whose);
    return 0;
}
