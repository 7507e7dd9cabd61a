/* SPDX-License-Identifier: MIT */
/* The plain sampler that every backend is compared with.
 *
 * What a request does to logits (penalties, DRY, biases, bad words, masks) is written to a copy of the row;
 * then a path is taken by what is asked for. A small top-k looks first at the largest logit of each 32 ids:
 * only groups that may hold one of the k are looked into. Top-p alone and no filter at all never list the
 * vocabulary (top_p.h, logits.h). Filters that look at all candidates (filters.h) take them one by one.
 *
 * Biases come as a list and are spread over a table of the vocabulary for the time of one call; so are the
 * uses of a window and the repeats of DRY. A logit that is not finite is never a candidate. */

#include "engine/sampling/sampling.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sampling/candidates.h"
#include "engine/sampling/dry.h"
#include "engine/sampling/filters.h"
#include "engine/sampling/logits.h"
#include "engine/sampling/top_p.h"

#define GROUP 32 /* ids of one word of a mask */
#define LANES 8

struct sampler {
    uint32_t n_vocab;
    struct candidates all;  /* [n_vocab] */
    float *tops;            /* [⌈n_vocab / GROUP⌉] */
    float *biases;          /* [n_vocab], zero between calls */
    float *changed;         /* [n_vocab] logits after penalties, biases and masks */
    float *masses;          /* [n_vocab] as those of candidates, of all ids */
    struct token_use *uses; /* [n_vocab] of a window, zero between calls */
    uint16_t *repeats;      /* [n_vocab] of DRY, zero between calls */
};

int sampler_new(uint32_t n_vocab, struct sampler **ret_sampler)
{
    const size_t n = (size_t)n_vocab + 1;
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return -ENOMEM;
    sampler->n_vocab = n_vocab;
    sampler->tops = malloc((n / GROUP + 1) * sizeof *sampler->tops);
    sampler->biases = calloc(n, sizeof *sampler->biases);
    sampler->changed = malloc(n * sizeof *sampler->changed);
    sampler->masses = malloc(n * sizeof *sampler->masses);
    sampler->uses = calloc(n, sizeof *sampler->uses);
    sampler->repeats = calloc(n, sizeof *sampler->repeats);
    if (candidates_init(&sampler->all, n_vocab) < 0 || !sampler->tops || !sampler->biases ||
        !sampler->changed || !sampler->masses || !sampler->uses || !sampler->repeats) {
        sampler_free(sampler);
        return -ENOMEM;
    }
    *ret_sampler = sampler;
    return 0;
}

struct sampler *sampler_free(struct sampler *sampler)
{
    if (sampler) {
        candidates_deinit(&sampler->all);
        free(sampler->tops);
        free(sampler->biases);
        free(sampler->changed);
        free(sampler->masses);
        free(sampler->uses);
        free(sampler->repeats);
    }
    free(sampler);
    return NULL;
}

static bool has_penalties(const struct sampling *sampling)
{
    return sampling->repeat_last_n != 0 &&
           (sampling->repetition_penalty != 1 || sampling->presence_penalty != 0 ||
            sampling->frequency_penalty != 0);
}

bool sampling_needs_uses(const struct sampling *sampling)
{
    return has_penalties(sampling) && sampling->repeat_last_n < 0;
}

bool sampling_needs_history(const struct sampling *sampling)
{
    return (has_penalties(sampling) && sampling->repeat_last_n > 0) || dry_is_on(sampling) ||
           sampling->bad_words.n > 0;
}

/* One row of logits, what may be sampled of it, and what changes its logits. */
struct row {
    const float *logits;            /* [n_vocab] */
    const uint32_t *mask, *allowed; /* NULL: everything */
    const struct token_use *uses;   /* [n_vocab]; NULL: no penalty */
    const float *biases;            /* [n_vocab]; NULL: none */
    const uint16_t *repeats;        /* [n_vocab] lengths for DRY; NULL: none */
    const struct sampling *sampling;
    float repetition, presence, frequency;
};

/* The logit of an id that was used, after penalties. Only the repetition penalty scales, so only it can leave
 * the range of float: what is added or taken off is far below half a unit in the last place there. */
static float penalized(const struct row *row, float logit, struct token_use use)
{
    if (!isfinite(logit))
        return logit;
    logit = logit > 0 ? logit / row->repetition : logit * row->repetition;
    logit = logit > FLT_MAX ? FLT_MAX : logit < -FLT_MAX ? -FLT_MAX : logit;
    return use.in_output > 0 ? logit - (row->presence + row->frequency * (float)use.in_output) : logit;
}

/* The uses of the group from `base` on, or NULL when it has none, as most have: to see that takes vector
 * registers, if the count is a constant. */
static const struct token_use *group_uses(const struct row *row, uint32_t base, uint32_t n)
{
    uint32_t used = n < GROUP;
    if (!row->uses)
        return NULL;
    for (uint32_t i = 0; n == GROUP && i < GROUP; i++)
        used |= row->uses[base + i].in_prompt | row->uses[base + i].in_output;
    return used ? row->uses + base : NULL;
}

/* Which of the 32 ids from `base` on may be sampled. */
static uint32_t group_word(const struct sampler *sampler, const struct row *row, uint32_t base)
{
    uint32_t left = sampler->n_vocab - base;
    uint32_t word = left < GROUP ? (1u << left) - 1 : UINT32_MAX;
    if (row->mask)
        word &= row->mask[base / GROUP];
    return row->allowed ? word & row->allowed[base / GROUP] : word;
}

/* Fills candidates with every id of a row without penalties and biases that may be sampled, less those of
 * groups whose top is below `least` (−∞: all groups, whose tops then need not be known); returns how many,
 * and the largest key. */
static uint32_t gather(struct sampler *sampler, const struct row *row, float least, uint64_t *ret_best)
{
    const float *logits = row->logits;
    uint32_t n = 0;
    uint64_t best = 0;
    for (uint32_t base = 0; base < sampler->n_vocab; base += GROUP) {
        if (least > -INFINITY && sampler->tops[base / GROUP] < least)
            continue;
        uint32_t word = group_word(sampler, row, base);
        for (uint32_t i = 0; i < GROUP && word >> i; i++) {
            if (!(word >> i & 1))
                continue;
            float logit = logits[base + i];
            if (!isfinite(logit))
                continue;
            uint64_t key = key_of(logit, base + i);
            sampler->all.items[n++].key = key;
            best = key > best ? key : best;
        }
    }
    *ret_best = best;
    return n;
}

/* The largest finite logit of a group, −∞ when it has none. */
static float group_top(const float *logits, uint32_t word)
{
    float top = -INFINITY;
    if (word == UINT32_MAX) { /* in lanes, for vector registers; a NaN never replaces a number */
        float lanes[LANES];
        bool finite = true;
        memcpy(lanes, logits, sizeof lanes);
        for (int i = LANES; i < GROUP; i += LANES)
            for (int j = 0; j < LANES; j++)
                lanes[j] = logits[i + j] > lanes[j] ? logits[i + j] : lanes[j];
        for (int j = 0; j < LANES; j++) {
            finite &= isfinite(lanes[j]) != 0;
            top = lanes[j] > top ? lanes[j] : top;
        }
        if (finite)
            return top;
        top = -INFINITY;
    }
    for (int i = 0; i < GROUP && word >> i; i++)
        if (word >> i & 1 && isfinite(logits[i]) && logits[i] > top)
            top = logits[i];
    return top;
}

/* Writes the largest logit of each group. Returns a logit that at least `k` ids reach, or −∞: each of the k
 * groups with the largest ones has such an id. What is below it can be in no top-k. */
static float group_tops(struct sampler *sampler, const struct row *row, uint32_t k)
{
    uint32_t n = 0;
    float highest = -INFINITY;
    for (uint32_t base = 0; base < sampler->n_vocab; base += GROUP) {
        float top = group_top(row->logits + base, group_word(sampler, row, base));
        sampler->tops[base / GROUP] = top;
        highest = top > highest ? top : highest;
        if (isfinite(top))
            sampler->all.items[n++].key = key_of(top, base);
    }
    if (k == 1)
        return highest;
    return k <= n ? key_logit(candidates_threshold(&sampler->all, n, false, k)) : -INFINITY;
}

/* Argmax of logit / temperature + Gumbel noise. The noise of id i is −log(−log u), u the word i mod 4 of the
 * Philox block (position, ⌊i / 4⌋) as a fraction at the middle of its cell. */
static int32_t draw(const struct sampler *sampler, uint32_t n, const struct sampling *sampling,
                    struct scale scale, uint64_t position)
{
    uint32_t key[2] = {(uint32_t)sampling->seed, (uint32_t)(sampling->seed >> 32)};
    uint32_t random[4], block = UINT32_MAX;
    uint64_t winner = 0;
    double highest = -INFINITY, odds = INFINITY; /* odds: e^(−highest) */
    for (uint32_t i = 0; i < n; i++) {
        const struct candidate *c = &sampler->all.items[i];
        uint32_t id = key_id(c->key);
        if (id / 4 != block) {
            block = id / 4;
            uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), block, 0};
            philox4x32(counter, key, random);
        }
        double u = ((double)random[id % 4] + 0.5) * 0x1p-32;
        /* To win, x + noise > highest, which needs 1 − u < e^(x − highest): most ids lose here, without a
         * logarithm. The mass is e^x cut to 40 bits, hence the one unit and the slack. */
        if (1 - u > ((double)c->mass + 1) * (1.001 / (double)MASS_ONE) * odds)
            continue;
        double x = (double)((key_logit(c->key) - scale.best) / scale.temperature);
        double score = x - log(-log(u));
        if (score > highest || (score == highest && c->key > winner)) {
            highest = score;
            winner = c->key;
            odds = exp(-highest);
        }
    }
    return (int32_t)key_id(winner);
}

/* The logits after steps 1 to 5: as they are, or a copy with −∞ where an id may not be sampled. */
static const float *changed_logits(struct sampler *sampler, const struct row *row)
{
    if (!row->uses && !row->repeats && !row->biases && !row->mask && !row->allowed)
        return row->logits;
    for (uint32_t base = 0; base < sampler->n_vocab; base += GROUP) {
        const uint32_t left = sampler->n_vocab - base, n = left < GROUP ? left : GROUP;
        const uint32_t word = group_word(sampler, row, base);
        const struct token_use *uses = group_uses(row, base, n);
        float *to = sampler->changed + base;
        memcpy(to, row->logits + base, n * sizeof *to);
        for (uint32_t i = 0; uses && i < n; i++)
            if (uses[i].in_prompt | uses[i].in_output)
                to[i] = penalized(row, to[i], uses[i]);
        for (uint32_t i = 0; row->repeats && i < n; i++)
            if (row->repeats[base + i] > 0)
                to[i] -= dry_penalty(row->sampling, row->repeats[base + i]);
        for (uint32_t i = 0; row->biases && i < n; i++)
            to[i] += row->biases[base + i];
        for (uint32_t i = 0; word != UINT32_MAX && i < n; i++)
            to[i] = word >> i & 1 ? to[i] : -INFINITY;
    }
    return sampler->changed;
}

/* An id's score in the contest of draw, and whether it is the highest so far. */
static void compete(struct contest *contest, uint64_t key, double *highest, uint64_t *winner)
{
    const uint32_t id = key_id(key);
    const uint32_t counter[4] = {(uint32_t)contest->position, (uint32_t)(contest->position >> 32), id / 4, 0};
    const uint32_t seed[2] = {(uint32_t)contest->seed, (uint32_t)(contest->seed >> 32)};
    uint32_t random[4];
    philox4x32(counter, seed, random);
    const double u = ((double)random[id % 4] + 0.5) * 0x1p-32;
    const double score = (double)((key_logit(key) - contest->best) / contest->temperature) - log(-log(u));
    if (score > *highest || (score == *highest && key > *winner)) {
        *highest = score;
        *winner = key;
        contest->odds = exp(-score);
    }
}

/* What filters leave of a whole row: keys from least_key on, masses from least_mass on. */
struct rest {
    uint64_t least_key, least_mass; /* 0: all */
    const float *masses;            /* NULL: nobody has asked for them */
};

static bool is_left(const struct rest *rest, uint64_t key)
{
    return key >= rest->least_key &&
           (rest->least_mass == 0 || (uint64_t)rest->masses[key_id(key)] >= rest->least_mass);
}

/* draw, from all ids that are left; `best` is the largest logit. */
static int32_t draw_of_all(const float *logits, uint32_t n, const struct sampling *sampling, float best,
                           uint64_t position, const struct rest *rest)
{
    struct contest contest = {.seed = sampling->seed,
                              .position = position,
                              .best = best,
                              .temperature = (float)sampling->temperature,
                              .least = rest->least_key ? key_logit(rest->least_key) : -FLT_MAX,
                              .odds = INFINITY};
    double highest = -INFINITY;
    uint64_t winner = 0;
    uint8_t may[LOGITS_PIECE];
    compete(&contest, key_of(best, logits_find(logits, n, best)), &highest, &winner);
    for (uint32_t first = 0; first < n; first += LOGITS_PIECE) {
        const uint32_t left = n - first;
        logits_contenders(logits + first, first, left < LOGITS_PIECE ? left : LOGITS_PIECE, &contest, may);
        for (uint32_t i = 0; i < LOGITS_PIECE; i += 8) {
            uint64_t eight;
            memcpy(&eight, may + i, sizeof eight);
            for (uint32_t j = i; eight && j < i + 8; j++) {
                const uint64_t key = may[j] ? key_of(logits[first + j], first + j) : 0;
                if (key && is_left(rest, key))
                    compete(&contest, key, &highest, &winner);
            }
        }
    }
    return (int32_t)key_id(winner);
}

/* ---- top-p alone ---- */

/* Candidates of the logits from `least` to below `below`; returns how many. */
static uint32_t list(struct sampler *sampler, const float *logits, float least, float below)
{
    const uint32_t n = logits_between(logits, sampler->n_vocab, least, below, sampler->all.open);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = sampler->all.open[i];
        sampler->all.items[i] = (struct candidate){key_of(logits[id], id), (uint64_t)sampler->masses[id]};
    }
    return n;
}

/* Only ids near the border are looked at one by one, and those above it if they are few. */
static int32_t sample_top_p(struct sampler *sampler, const float *logits, const struct sampling *sampling,
                            uint64_t position)
{
    const float best = logits_best(logits, sampler->n_vocab);
    struct rest rest = {.masses = sampler->masses, .least_mass = filters_min_p_mass(MASS_ONE, sampling)};
    if (best == -INFINITY)
        return -1;
    const struct top_p_row row = {.logits = logits,
                                  .masses = sampler->masses,
                                  .n = sampler->n_vocab,
                                  .best = best,
                                  .temperature = (float)sampling->temperature,
                                  .total = logits_masses(logits, sampler->n_vocab, best,
                                                         (float)sampling->temperature, sampler->masses)};
    const uint64_t target = filters_top_p_target(row.total, sampling);
    struct top_p_border border;
    if (top_p_find(&row, target, &border)) {
        uint32_t n = list(sampler, logits, border.least, border.below);
        rest.least_key = candidates_threshold(&sampler->all, n, true, target - border.mass_above);
        if (border.n_above <= TOP_P_FEW) {
            n = candidates_keep(&sampler->all, list(sampler, logits, key_logit(rest.least_key), INFINITY),
                                rest.least_key);
            n = candidates_keep_mass(&sampler->all, n, rest.least_mass);
            return draw(sampler, n, sampling, (struct scale){best, (float)sampling->temperature}, position);
        }
    }
    return draw_of_all(logits, sampler->n_vocab, sampling, best, position, &rest);
}

/* A logit below which min-p leaves nothing, whatever is rounded: 1 % of probability further down. */
static float least_of_min_p(float best, const struct sampling *sampling)
{
    return (float)((double)best + (double)(float)sampling->temperature * log(sampling->min_p * 0.99));
}

/* A logit below which no candidate is left before a filter sees it, by top-k or by min-p alone; −∞: none is
 * known. Writes the groups' tops where there is one. */
static float least_of_rare(struct sampler *sampler, const struct row *row, const struct sampling *sampling)
{
    const uint32_t k = (uint32_t)sampling->top_k;
    if (sampling->top_n_sigma > 0)
        return -INFINITY;
    if (k > 0)
        return k <= sampler->n_vocab / GROUP / 4 ? group_tops(sampler, row, k) : -INFINITY;
    const bool all = sampling->typical_p < 1 || sampling->dynatemp_range > 0 || sampling->top_p < 1 ||
                     sampling->min_p <= 0;
    return all ? -INFINITY : least_of_min_p(group_tops(sampler, row, 1), sampling);
}

/* With a filter that looks at all candidates there are: one by one. */
static int32_t sample_rare(struct sampler *sampler, const struct row *row, const struct sampling *sampling,
                           uint64_t position)
{
    uint64_t best;
    uint32_t n = gather(sampler, row, least_of_rare(sampler, row, sampling), &best);
    if (n == 0)
        return -1;
    struct scale scale = {key_logit(best), (float)sampling->temperature};
    n = filters_top_n_sigma(&sampler->all, n, sampling, scale.best);
    n = filters_top_k(&sampler->all, n, sampling);
    scale.temperature = filters_temperature(&sampler->all, n, sampling, scale.best);
    if (scale.temperature == 0)
        return (int32_t)key_id(best);
    n = filters_apply(&sampler->all, n, sampling, scale, position);
    return draw(sampler, n, sampling, scale, position);
}

/* Samples of a row whose changes are all known. Penalties and biases are applied first, in one pass that most
 * groups are only copied by: what comes then is as quick as without them. */
static int32_t sample_row(struct sampler *sampler, const struct row *from, const struct sampling *sampling,
                          uint64_t position)
{
    struct row changed = *from;
    const struct row *row = &changed;
    if (from->uses || from->biases || from->repeats) {
        changed.logits = changed_logits(sampler, from);
        changed.uses = NULL;
        changed.repeats = NULL;
        changed.biases = NULL;
        changed.mask = NULL; /* what it forbids is −∞ now */
        changed.allowed = NULL;
    }
    bool greedy = (float)sampling->temperature == 0 || sampling->top_k == 1;
    uint32_t k = greedy ? 1 : (uint32_t)sampling->top_k;
    if (!greedy && filters_are_rare(sampling))
        return sample_rare(sampler, row, sampling, position);
    if (k == 0 && sampling->top_p < 1)
        return sample_top_p(sampler, changed_logits(sampler, row), sampling, position);
    if (k == 0 && sampling->min_p <= 0) {
        const float *logits = changed_logits(sampler, row);
        const float best = logits_best(logits, sampler->n_vocab);
        return best == -INFINITY ? -1
                                 : draw_of_all(logits, sampler->n_vocab, sampling, best, position,
                                               &(struct rest){.masses = NULL});
    }
    bool by_groups = k > 0 && k <= sampler->n_vocab / GROUP / 4; /* a look at a few groups only */
    float least = by_groups ? group_tops(sampler, row, k) : -INFINITY;
    if (k == 0)
        least = least_of_min_p(group_tops(sampler, row, 1), sampling);
    uint64_t best;
    uint32_t n = gather(sampler, row, least, &best);
    if (n == 0)
        return -1;
    if (greedy)
        return (int32_t)key_id(best);
    struct scale scale = {key_logit(best), (float)sampling->temperature};
    n = filters_top_k(&sampler->all, n, sampling);
    n = filters_apply(&sampler->all, n, sampling, scale, position);
    return draw(sampler, n, sampling, scale, position);
}

/* ---- what a call adds, and takes back ---- */

/* Adds the biases of a call to the table of the vocabulary, or takes them out of it. */
static void spread_biases(struct sampler *sampler, const struct logit_bias_list *list, bool add)
{
    for (size_t i = 0; i < list->n; i++) {
        const uint32_t id = (uint32_t)list->items[i].id;
        if (id < sampler->n_vocab)
            sampler->biases[id] = add ? sampler->biases[id] + list->items[i].bias : 0;
    }
}

/* Bars the ids that would complete a bad word, or clears what was barred. Returns whether there is one. */
static bool bar_words(struct sampler *sampler, const struct id_sequences *words,
                      const struct sampler_row *from, bool add)
{
    bool any = false;
    for (size_t at = 0; at < words->len; at += 1 + (size_t)words->items[at]) {
        const uint32_t n = (uint32_t)words->items[at];
        const int32_t *ids = words->items + at + 1;
        const uint32_t last = (uint32_t)ids[n - 1];
        if (last >= sampler->n_vocab || from->n_history < n - 1 ||
            (n > 1 && memcmp(ids, from->history + from->n_history - (n - 1), (n - 1) * sizeof *ids) != 0))
            continue;
        sampler->biases[last] = add ? -INFINITY : 0;
        any = true;
    }
    return any;
}

/* Bars the ids that may not be sampled here, or clears what was barred. */
static void bar_ids(struct sampler *sampler, const struct sampler_row *from, bool add)
{
    for (uint32_t i = 0; i < from->n_barred; i++)
        if ((uint32_t)from->barred[i] < sampler->n_vocab)
            sampler->biases[from->barred[i]] = add ? -INFINITY : 0;
}

/* The uses of the last repeat_last_n ids, in the table of the vocabulary, or zeros in their place. */
static void count_window(struct sampler *sampler, const struct sampling *sampling,
                         const struct sampler_row *from, bool add)
{
    const uint32_t most = (uint32_t)sampling->repeat_last_n, n = from->n_history;
    for (uint32_t i = n > most ? n - most : 0; i < n; i++) {
        const uint32_t id = (uint32_t)from->history[i];
        if (id >= sampler->n_vocab)
            continue;
        if (!add)
            sampler->uses[id] = (struct token_use){0};
        else if (i < from->n_prompt)
            sampler->uses[id].in_prompt = 1;
        else
            token_use_count(&sampler->uses[id]);
    }
}

int32_t sampler_sample(struct sampler *sampler, const struct sampling *sampling,
                       const struct sampler_row *from)
{
    const bool windowed = has_penalties(sampling) && sampling->repeat_last_n > 0;
    const struct ids_view history = {from->history, from->n_history};
    struct row row = {.logits = from->logits,
                      .mask = from->mask,
                      .allowed = from->allowed,
                      .uses = windowed                        ? sampler->uses
                              : sampling_needs_uses(sampling) ? from->uses
                                                              : NULL,
                      .sampling = sampling,
                      .repetition = (float)sampling->repetition_penalty,
                      .presence = (float)sampling->presence_penalty,
                      .frequency = (float)sampling->frequency_penalty};
    spread_biases(sampler, &sampling->logit_bias, true);
    bar_ids(sampler, from, true);
    if (bar_words(sampler, &sampling->bad_words, from, true) || sampling->logit_bias.n + from->n_barred > 0)
        row.biases = sampler->biases;
    if (windowed)
        count_window(sampler, sampling, from, true);
    if (dry_is_on(sampling) && dry_mark(sampling, history, sampler->n_vocab, sampler->repeats))
        row.repeats = sampler->repeats;
    int32_t id = sample_row(sampler, &row, sampling, from->position);
    if (row.repeats)
        dry_clear(sampling, history, sampler->n_vocab, sampler->repeats);
    if (windowed)
        count_window(sampler, sampling, from, false);
    bar_words(sampler, &sampling->bad_words, from, false);
    bar_ids(sampler, from, false);
    spread_biases(sampler, &sampling->logit_bias, false);
    return id;
}

static int by_key_descending(const void *a, const void *b)
{
    uint64_t x = ((const struct candidate *)a)->key, y = ((const struct candidate *)b)->key;
    return (x < y) - (x > y);
}

void sampler_logprobs(struct sampler *sampler, const float *logits, int32_t sampled, uint32_t n,
                      struct logprob *ret_logprobs)
{
    uint64_t highest;
    const struct row row = {.logits = logits};
    const float best = logits_best(logits, sampler->n_vocab);
    const double sum = best > -INFINITY ? logits_sum_exp(logits, sampler->n_vocab, best) : 0;
    const double base = sum > 0 ? (double)best + log(sum) : 0;
    const float least = n > 0 ? group_tops(sampler, &row, n) : INFINITY;
    uint32_t found = n > 0 ? gather(sampler, &row, least, &highest) : 0;

    bool known = sampled >= 0 && (uint32_t)sampled < sampler->n_vocab && isfinite(logits[sampled]);
    ret_logprobs[0] = (struct logprob){sampled, known ? (float)((double)logits[sampled] - base) : -INFINITY};

    if (n < found)
        found =
            n ? candidates_keep(&sampler->all, found, candidates_threshold(&sampler->all, found, false, n))
              : 0;
    qsort(sampler->all.items, found, sizeof sampler->all.items[0], by_key_descending);
    for (uint32_t i = 0; i < n; i++) {
        ret_logprobs[1 + i] = (struct logprob){-1, -INFINITY};
        if (i < found) {
            uint64_t key = sampler->all.items[i].key;
            ret_logprobs[1 + i] =
                (struct logprob){(int32_t)key_id(key), (float)((double)key_logit(key) - base)};
        }
    }
}
