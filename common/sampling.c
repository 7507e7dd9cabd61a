/* SPDX-License-Identifier: MIT */
/* Checks and copies of sampling parameters, spelled out from their list.
 *
 * Messages are checked while they are decoded, by tables that are made of the same list; the check here is
 * for those who call the engine without a message in between. */

#include "common/sampling.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_bias(const struct logit_bias *entry, uint32_t n_vocab, struct error *err)
{
    if (entry->id < 0 || (n_vocab > 0 && (uint32_t)entry->id >= n_vocab))
        return error_set(err, -EINVAL, "logit_bias: id %d is outside the vocabulary of %u", entry->id,
                         n_vocab);
    if (!(entry->bias >= -SAMPLING_MAX_BIAS && entry->bias <= SAMPLING_MAX_BIAS) && entry->bias != -INFINITY)
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
    if ((int64_t)sampling->name < (least) || (int64_t)sampling->name > (most))                               \
        return error_out_of_range(err, -EINVAL, #name, sampling->name, least, most);
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
    if (r == 0 && sampling->bad_words.n + sampling->dry_breakers.sequences.n > SAMPLING_MOST_SEQUENCES)
        r = error_set(err, -EINVAL,
                      "bad_words and dry_sequence_breakers: at most %d sequences of tokens are allowed",
                      SAMPLING_MOST_SEQUENCES);
    if (r == 0 && sampling->bad_words.len + sampling->dry_breakers.sequences.len > SAMPLING_MOST_SEQUENCE_LEN)
        r = error_set(
            err, -EINVAL,
            "bad_words and dry_sequence_breakers: too many tokens; at most %d, with a length for each "
            "sequence, are allowed",
            SAMPLING_MOST_SEQUENCE_LEN);
    return r;
}

void sampling_leave(struct sampling *sampling)
{
#define LEAVE_REAL(name, ...)  sampling->name = SAMPLING_LEFT_REAL;
#define LEAVE_COUNT(name, ...) sampling->name = SAMPLING_LEFT_COUNT;
    SAMPLING_PARAMETERS(LEAVE_REAL, LEAVE_COUNT)
}

/* A copy of n items, NULL of none. */
static int copy_items(const void *from, size_t n, size_t size, const void **ret_items)
{
    void *items = n > 0 ? malloc(n * size) : NULL;
    if (n > 0 && !items)
        return -ENOMEM;
    if (n > 0)
        memcpy(items, from, n * size);
    *ret_items = items;
    return 0;
}

int sampling_copy(const struct sampling *from, struct sampling *ret_sampling)
{
    const struct logit_bias_list *biases = &from->logit_bias;
    const struct id_sequences *words = &from->bad_words, *sequences = &from->dry_breakers.sequences;
    const void *lists[4] = {0};
    int r = copy_items(biases->items, biases->n, sizeof *biases->items, &lists[0]);
    if (r == 0)
        r = copy_items(words->items, words->len, sizeof *words->items, &lists[1]);
    if (r == 0)
        r = copy_items(sequences->items, sequences->len, sizeof *sequences->items, &lists[2]);
    if (r == 0)
        r = copy_items(from->dry_breakers.mask, from->dry_breakers.n_words, sizeof(uint32_t), &lists[3]);
    if (r < 0) {
        for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
            free((void *)lists[i]);
        return r;
    }
    *ret_sampling = *from;
    ret_sampling->logit_bias.items = lists[0];
    ret_sampling->bad_words.items = lists[1];
    ret_sampling->dry_breakers.sequences.items = lists[2];
    ret_sampling->dry_breakers.mask = lists[3];
    return 0;
}

void sampling_deinit(struct sampling *sampling)
{
    free((void *)sampling->logit_bias.items);
    free((void *)sampling->bad_words.items);
    free((void *)sampling->dry_breakers.sequences.items);
    free((void *)sampling->dry_breakers.mask);
    sampling->logit_bias = (struct logit_bias_list){0};
    sampling->bad_words = (struct id_sequences){0};
    sampling->dry_breakers = (struct dry_breakers){0};
}
