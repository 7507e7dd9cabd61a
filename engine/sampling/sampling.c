/* SPDX-License-Identifier: MIT */
/* The plain sampler that every backend is compared with.
 *
 * A candidate is one 64-bit key: the logit's bits, made monotonic, above the complement of the id. Descending
 * keys are then the order of the contract, likely first and the lower id first among equals, and no two are
 * equal. Top-k and top-p are the same question, "how far down that order until the amounts reach a target",
 * with amounts 1 or probabilities; a radix descent over the key answers it without sorting and in bounded
 * time whatever the logits. A small top-k looks first at the largest logit of each 32 ids: only groups that
 * may hold one of the k are looked into. Probabilities are summed as fixed-point integers, so that the sum
 * has no order and a parallel implementation gets the same bits.
 *
 * Biases come as a list and are spread over a table of the vocabulary for the time of one call. A logit that
 * is not finite is never a candidate. */

#include "engine/sampling/sampling.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "engine/sampling/logits.h"
#include "engine/sampling/top_p.h"

#define MASS_ONE   (1ull << 40) /* the mass of the most likely id; 2^23 ids cannot overflow the sum */
#define DIGIT_BITS 11           /* sign, exponent and two bits of mantissa decide in the first round */
#define DIGITS     (1u << DIGIT_BITS)
#define GROUP      32 /* ids of one word of a mask */
#define LANES      8

struct candidate {
    uint64_t key;
    uint64_t mass; /* softmax numerator relative to the most likely, in units of 1 / MASS_ONE */
};

struct sampler {
    uint32_t n_vocab;
    uint64_t sums[DIGITS];
    uint32_t *scratch; /* [n_vocab] indices of the descent */
    float *tops;       /* [⌈n_vocab / GROUP⌉] */
    float *biases;     /* [n_vocab], zero between calls */
    float *changed;    /* [n_vocab] logits after penalties, biases and masks */
    float *masses;     /* [n_vocab] as those of candidates, of all ids */
    struct candidate candidates[];
};

int sampler_new(uint32_t n_vocab, struct sampler **ret_sampler)
{
    struct sampler *sampler = malloc(sizeof *sampler + (size_t)n_vocab * sizeof sampler->candidates[0]);
    if (!sampler)
        return -ENOMEM;
    sampler->n_vocab = n_vocab;
    sampler->scratch = malloc(((size_t)n_vocab + 1) * sizeof *sampler->scratch);
    sampler->tops = malloc(((size_t)n_vocab / GROUP + 1) * sizeof *sampler->tops);
    sampler->biases = calloc((size_t)n_vocab + 1, sizeof *sampler->biases);
    sampler->changed = malloc(((size_t)n_vocab + 1) * sizeof *sampler->changed);
    sampler->masses = malloc(((size_t)n_vocab + 1) * sizeof *sampler->masses);
    if (!sampler->scratch || !sampler->tops || !sampler->biases || !sampler->changed || !sampler->masses) {
        sampler_free(sampler);
        return -ENOMEM;
    }
    *ret_sampler = sampler;
    return 0;
}

struct sampler *sampler_free(struct sampler *sampler)
{
    if (sampler) {
        free(sampler->scratch);
        free(sampler->tops);
        free(sampler->biases);
        free(sampler->changed);
        free(sampler->masses);
    }
    free(sampler);
    return NULL;
}

bool sampling_needs_uses(const struct sampling *sampling)
{
    return sampling->repetition_penalty != 1 || sampling->presence_penalty != 0 ||
           sampling->frequency_penalty != 0;
}

/* One row of logits, what may be sampled of it, and what changes its logits. */
struct row {
    const float *logits;            /* [n_vocab] */
    const uint32_t *mask, *allowed; /* NULL: everything */
    const struct token_use *uses;   /* [n_vocab]; NULL: no penalty */
    const float *biases;            /* [n_vocab]; NULL: none */
    float repetition, presence, frequency;
};

static uint64_t key_of(float logit, uint32_t id)
{
    uint32_t bits;
    logit += 0.0f; /* −0 and 0 are a tie */
    memcpy(&bits, &logit, sizeof bits);
    bits = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 32 | (uint32_t)~id;
}

static float key_logit(uint64_t key)
{
    uint32_t bits = (uint32_t)(key >> 32);
    float logit;
    bits = bits & 0x80000000u ? bits & 0x7fffffffu : ~bits;
    memcpy(&logit, &bits, sizeof logit);
    return logit;
}

static uint32_t key_id(uint64_t key)
{
    return ~(uint32_t)key;
}

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
            sampler->candidates[n++].key = key;
            best = key > best ? key : best;
        }
    }
    *ret_best = best;
    return n;
}

/* The smallest key that is kept when candidates are taken in descending order until their amounts (mass, or 1
 * each) reach `target`; 0 keeps all. Looks at one digit of the key a round, among those that share the digits
 * before. */
static uint64_t key_threshold(struct sampler *sampler, uint32_t n, bool by_mass, uint64_t target)
{
    uint32_t *open = sampler->scratch;
    uint32_t n_open = n;
    for (int shift = 64 - DIGIT_BITS; n_open > 0; shift = shift > DIGIT_BITS ? shift - DIGIT_BITS : 0) {
        memset(sampler->sums, 0, sizeof sampler->sums);
        for (uint32_t i = 0; i < n_open; i++) {
            const struct candidate *c = &sampler->candidates[n_open == n ? i : open[i]];
            sampler->sums[c->key >> shift & (DIGITS - 1)] += by_mass ? c->mass : 1;
        }
        int digit = DIGITS - 1;
        while (digit >= 0 && sampler->sums[digit] < target)
            target -= sampler->sums[digit--];
        if (digit < 0)
            return 0;
        uint32_t kept = 0;
        uint64_t last = 0;
        for (uint32_t i = 0; i < n_open; i++) {
            uint32_t at = n_open == n ? i : open[i];
            if ((int)(sampler->candidates[at].key >> shift & (DIGITS - 1)) != digit)
                continue;
            last = sampler->candidates[at].key;
            open[kept++] = at;
        }
        if (kept == 1 || shift == 0)
            return last;
        n_open = kept;
    }
    return 0;
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
            sampler->candidates[n++].key = key_of(top, base);
    }
    if (k == 1)
        return highest;
    return k <= n ? key_logit(key_threshold(sampler, n, false, k)) : -INFINITY;
}

static uint32_t keep_from(struct sampler *sampler, uint32_t n, uint64_t threshold)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (sampler->candidates[i].key >= threshold)
            sampler->candidates[kept++] = sampler->candidates[i];
    return kept;
}

static uint64_t target_of_top_p(uint64_t total, const struct sampling *sampling)
{
    const uint64_t target = (uint64_t)ceil((double)total * sampling->top_p);
    return target ? target : 1;
}

static uint64_t least_mass_of_min_p(const struct sampling *sampling)
{
    return sampling->min_p > 0 ? (uint64_t)ceil((double)MASS_ONE * sampling->min_p) : 0;
}

static uint32_t keep_mass_from(struct sampler *sampler, uint32_t n, uint64_t least)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (sampler->candidates[i].mass >= least)
            sampler->candidates[kept++] = sampler->candidates[i];
    return kept;
}

/* Filters what top_p and min_p exclude; masses are set afterwards. */
static uint32_t filter_by_mass(struct sampler *sampler, uint32_t n, const struct sampling *sampling,
                               float best)
{
    float temperature = (float)sampling->temperature;
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++) {
        float x = (key_logit(sampler->candidates[i].key) - best) / temperature;
        sampler->candidates[i].mass = (uint64_t)(expf(x) * (float)MASS_ONE);
        total += sampler->candidates[i].mass;
    }
    if (sampling->top_p < 1)
        n = keep_from(sampler, n, key_threshold(sampler, n, true, target_of_top_p(total, sampling)));
    return keep_mass_from(sampler, n, least_mass_of_min_p(sampling));
}

/* Argmax of logit / temperature + Gumbel noise. The noise of id i is −log(−log u), u the word i mod 4 of the
 * Philox block (position, ⌊i / 4⌋) as a fraction at the middle of its cell. */
static int32_t draw(const struct sampler *sampler, uint32_t n, const struct sampling *sampling, float best,
                    uint64_t position)
{
    float temperature = (float)sampling->temperature;
    uint32_t key[2] = {(uint32_t)sampling->seed, (uint32_t)(sampling->seed >> 32)};
    uint32_t random[4], block = UINT32_MAX;
    uint64_t winner = 0;
    double highest = -INFINITY, odds = INFINITY; /* odds: e^(−highest) */
    for (uint32_t i = 0; i < n; i++) {
        const struct candidate *c = &sampler->candidates[i];
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
        double x = (double)((key_logit(c->key) - best) / temperature);
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
    if (!row->uses && !row->biases && !row->mask && !row->allowed)
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
    const uint32_t n = logits_between(logits, sampler->n_vocab, least, below, sampler->scratch);
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t id = sampler->scratch[i];
        sampler->candidates[i] = (struct candidate){key_of(logits[id], id), (uint64_t)sampler->masses[id]};
    }
    return n;
}

/* Only ids near the border are looked at one by one, and those above it if they are few. */
static int32_t sample_top_p(struct sampler *sampler, const float *logits, const struct sampling *sampling,
                            uint64_t position)
{
    const float best = logits_best(logits, sampler->n_vocab);
    struct rest rest = {.masses = sampler->masses, .least_mass = least_mass_of_min_p(sampling)};
    if (best == -INFINITY)
        return -1;
    const struct top_p_row row = {.logits = logits,
                                  .masses = sampler->masses,
                                  .n = sampler->n_vocab,
                                  .best = best,
                                  .temperature = (float)sampling->temperature,
                                  .total = logits_masses(logits, sampler->n_vocab, best,
                                                         (float)sampling->temperature, sampler->masses)};
    const uint64_t target = target_of_top_p(row.total, sampling);
    struct top_p_border border;
    if (top_p_find(&row, target, &border)) {
        uint32_t n = list(sampler, logits, border.least, border.below);
        rest.least_key = key_threshold(sampler, n, true, target - border.mass_above);
        if (border.n_above <= TOP_P_FEW) {
            n = keep_from(sampler, list(sampler, logits, key_logit(rest.least_key), INFINITY),
                          rest.least_key);
            return draw(sampler, keep_mass_from(sampler, n, rest.least_mass), sampling, best, position);
        }
    }
    return draw_of_all(logits, sampler->n_vocab, sampling, best, position, &rest);
}

/* A logit below which min-p leaves nothing, whatever is rounded: 1 % of probability further down. */
static float least_of_min_p(float best, const struct sampling *sampling)
{
    return (float)((double)best + (double)(float)sampling->temperature * log(sampling->min_p * 0.99));
}

/* Samples of a row whose changes are all known. Penalties and biases are applied first, in one pass that most
 * groups are only copied by: what comes then is as quick as without them. */
static int32_t sample_row(struct sampler *sampler, const struct row *from, const struct sampling *sampling,
                          uint64_t position)
{
    struct row changed = *from;
    const struct row *row = &changed;
    if (from->uses || from->biases) {
        changed.logits = changed_logits(sampler, from);
        changed.uses = NULL;
        changed.biases = NULL;
        changed.mask = NULL; /* what it forbids is −∞ now */
        changed.allowed = NULL;
    }
    bool greedy = (float)sampling->temperature == 0 || sampling->top_k == 1;
    uint32_t k = greedy ? 1 : sampling->top_k;
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
    if (k > 0 && k < n)
        n = keep_from(sampler, n, key_threshold(sampler, n, false, k));
    n = filter_by_mass(sampler, n, sampling, key_logit(best));
    return draw(sampler, n, sampling, key_logit(best), position);
}

int32_t sampler_sample(struct sampler *sampler, const struct sampling *sampling,
                       const struct sampler_row *from)
{
    const struct logit_bias_list *list = &sampling->logit_bias;
    const struct row row = {.logits = from->logits,
                            .mask = from->mask,
                            .allowed = from->allowed,
                            .uses = sampling_needs_uses(sampling) ? from->uses : NULL,
                            .biases = list->n > 0 ? sampler->biases : NULL,
                            .repetition = (float)sampling->repetition_penalty,
                            .presence = (float)sampling->presence_penalty,
                            .frequency = (float)sampling->frequency_penalty};
    for (size_t i = 0; i < list->n; i++)
        if ((uint32_t)list->items[i].id < sampler->n_vocab)
            sampler->biases[list->items[i].id] += list->items[i].bias;
    int32_t id = sample_row(sampler, &row, sampling, from->position);
    for (size_t i = 0; i < list->n; i++)
        if ((uint32_t)list->items[i].id < sampler->n_vocab)
            sampler->biases[list->items[i].id] = 0;
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
        found = n ? keep_from(sampler, found, key_threshold(sampler, found, false, n)) : 0;
    qsort(sampler->candidates, found, sizeof sampler->candidates[0], by_key_descending);
    for (uint32_t i = 0; i < n; i++) {
        ret_logprobs[1 + i] = (struct logprob){-1, -INFINITY};
        if (i < found) {
            uint64_t key = sampler->candidates[i].key;
            ret_logprobs[1 + i] =
                (struct logprob){(int32_t)key_id(key), (float)((double)key_logit(key) - base)};
        }
    }
}
