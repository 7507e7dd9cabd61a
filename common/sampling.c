/* SPDX-License-Identifier: MIT */
/* Checks and copies of sampling parameters, spelled out from their list.
 *
 * Messages are checked while they are decoded, by tables that are made of the same list; the check here is
 * for those who call the engine without a message in between. */

#include "common/sampling.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int check_bias(const struct logit_bias *entry, uint32_t n_vocab, struct error *err)
{
    if (entry->id < 0 || (n_vocab > 0 && (uint32_t)entry->id >= n_vocab))
        return error_set(err, -EINVAL, "logit_bias: id %d is outside the vocabulary of %u", entry->id,
                         n_vocab);
    if (!(entry->bias >= -SAMPLING_MAX_BIAS && entry->bias <= SAMPLING_MAX_BIAS))
        return error_prefix(
            err,
            error_out_of_range_real(err, -EINVAL, "", entry->bias, -SAMPLING_MAX_BIAS, SAMPLING_MAX_BIAS),
            "logit_bias of id %d", entry->id);
    return 0;
}

int sampling_check(const struct sampling *sampling, uint32_t n_vocab, struct error *err)
{
/* Written so that NaN fails. */
#define CHECK_REAL(name, least, most, ...)                                                                   \
    if (!(sampling->name >= (least) && sampling->name <= (most)))                                            \
        return error_out_of_range_real(err, -EINVAL, #name, sampling->name, least, most);
#define CHECK_COUNT(name, least, most, ...)                                                                  \
    if (sampling->name > (most))                                                                             \
        return error_out_of_range_unsigned(err, -EINVAL, #name, sampling->name, least, most);
    SAMPLING_PARAMETERS(CHECK_REAL, CHECK_COUNT)
#undef CHECK_REAL
#undef CHECK_COUNT
    const struct logit_bias_list *biases = &sampling->logit_bias;
    if (biases->n > SAMPLING_MAX_BIASES)
        return error_set(err, -EINVAL, "logit_bias: %zu items; at most %d are allowed", biases->n,
                         SAMPLING_MAX_BIASES);
    int r = 0;
    for (size_t i = 0; i < biases->n && r == 0; i++)
        r = check_bias(&biases->items[i], n_vocab, err);
    return r;
}

void sampling_leave(struct sampling *sampling)
{
#define LEAVE_REAL(name, ...)  sampling->name = SAMPLING_LEFT_REAL;
#define LEAVE_COUNT(name, ...) sampling->name = SAMPLING_LEFT_COUNT;
    SAMPLING_PARAMETERS(LEAVE_REAL, LEAVE_COUNT)
}

int sampling_copy(const struct sampling *from, struct sampling *ret_sampling)
{
    struct logit_bias *items = NULL;
    if (from->logit_bias.n > 0) {
        items = calloc(from->logit_bias.n, sizeof *items);
        if (!items)
            return -ENOMEM;
        memcpy(items, from->logit_bias.items, from->logit_bias.n * sizeof *items);
    }
    *ret_sampling = *from;
    ret_sampling->logit_bias.items = items;
    return 0;
}

void sampling_deinit(struct sampling *sampling)
{
    free((void *)sampling->logit_bias.items);
    sampling->logit_bias = (struct logit_bias_list){0};
}
