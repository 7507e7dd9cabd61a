/* SPDX-License-Identifier: MIT */
/* Random mixes of requests through the engine, on the CPU and on the emulated device: prompts in chunks,
 * decodes, greedy and sampled, preemption for want of blocks and going on afterwards, prefixes found again,
 * in the store too, drafts, cancels.
 *
 * The two round differently, so ids are held to be equal as far as logits decide: at the first that differs,
 * the two most likely ids must have been as good as equal. Of sampled ones nobody knows by how much chance
 * has decided, so few may differ. Of each fourth request the log probabilities of those that are equal are
 * held to be as good as equal too. $QUERN_MIXES says how many mixes (default 2, the first of them a crowd,
 * which comes again at the end and finds its prefix in the store), $QUERN_FIRST_MIX the number of the one
 * after it (default 1; if it is set nothing but mixes is tested), $QUERN_ROUNDS how many go one after the
 * other through one engine (default 1; a thousand requests are 150), $QUERN_KV_TYPE what all keep keys and
 * values in (default f16), $QUERN_WEIGHTS the mixture of the model's weights (default F32), $QUERN_EXPERTS
 * how many experts it has, all of which each row goes to: a choice between them could hang on a rounding
 * (default 0: none), $QUERN_ARCHITECTURE its architecture (default llama, of experts qwen3moe). scripts/mixes
 * does thousands of them. */

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/system/shm.h"
#include "cuda/backend.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_shapes.h"
#include "engine/engine.h"
#include "engine/backend/kv_type.h"
#include "model/model.h"
#include "text/dialect/dialect.h"
#include "common/utf8.h"

#define MOST_REQUESTS 10
#define MOST_PARTS    3 /* of a character, after its first id */
#define LOGPROBS      3 /* the id, and the two most likely */

static struct model *model;
/* Between log probabilities of two. Where weights are quantized activations are rounded to 8 bits, and one
 * that falls to the other side moves all that comes after it; so does a key between two steps of 4 bits. */
static double undecided = 0.02;
static bool coarse;
/* How the model's thoughts would end: two ids, whose texts are the mark. */
static struct model_dialect thinks;
static char mark[64];
static int32_t mark_ids[2];
static enum backend_kv_type kv_type = BACKEND_KV_F16;

/* The backend on the device that is open, for what it counts. */
static struct backend *opened;

static int open_and_tell(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    int r = quern_backend.open(config, ret_backend, err);
    opened = r == 0 ? *ret_backend : NULL;
    return r;
}

struct outcome {
    struct ids ids;
    struct buffer logprobs; /* [ids][LOGPROBS] */
    enum engine_end end;
};

struct rig {
    struct engine *engine;
    uint32_t each_with_logprobs; /* each so-manieth request asks for log probabilities */
    struct outcome outcomes[MOST_REQUESTS];
};

static void sink(void *arg, const struct engine_event *event)
{
    struct outcome *o = &((struct rig *)arg)->outcomes[event->tag];
    ck_assert_int_eq(o->end, ENGINE_RUNNING);
    ids_append(&o->ids, event->ids, event->n_ids);
    if (event->logprobs)
        buffer_append(&o->logprobs, event->logprobs, event->n_ids * LOGPROBS * sizeof *event->logprobs);
    ck_assert_msg(event->end != ENGINE_END_FAULT, "%s", event->fault);
    o->end = event->end;
}

/* What followed the last id before. */
static uint32_t draft(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    for (uint32_t i = n - 1; i-- > 0;)
        if (ids[i] == ids[n - 1]) {
            const uint32_t found = n - 1 - i < most ? n - 1 - i : most;
            memcpy(ret_draft, ids + i + 1, found * sizeof *ids);
            return found;
        }
    return 0;
}

static void rig_init(struct rig *rig, const struct backend_ops *ops, const struct backend_config *backend,
                     uint32_t most_draft)
{
    struct engine_config config = {.model = model,
                                   .backend = ops,
                                   .backend_config = *backend,
                                   .most_cached = UINT32_MAX,
                                   .draft = most_draft ? draft : NULL,
                                   .most_draft = most_draft};
    struct error err = {0};
    *rig = (struct rig){.each_with_logprobs = 1};
    config.backend_config.kv_type = kv_type;
    if (getenv("QUERN_HOST_SAMPLING") && strcmp(ops->name, "cuda") == 0)
        config.host_sampling = &quern_host_sampling;
    ck_assert_msg(engine_new(&config, sink, rig, &rig->engine, &err) == 0, "%s", err.text);
}

static uint64_t rig_compared; /* ids, by host sampling, of all rigs */

static void rig_deinit(struct rig *rig)
{
    uint64_t compared, different;
    engine_compared(rig->engine, &compared, &different);
    ck_assert_uint_eq(different, 0);
    rig_compared += compared;
    engine_free(rig->engine);
    for (uint32_t i = 0; i < MOST_REQUESTS; i++) {
        ids_deinit(&rig->outcomes[i].ids);
        buffer_deinit(&rig->outcomes[i].logprobs);
    }
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((*state >> 33) % n);
}

/* A mix is a function of its seed. */
struct mix {
    struct backend_config backend;
    uint32_t n_requests, most_draft;
    struct {
        int32_t prompt[80];
        uint32_t n_prompt, max_tokens;
        int32_t stop_id;       /* −1: none of its own */
        uint32_t submitted_at; /* step */
        uint32_t cancelled_at; /* 0: never */
        bool sampled;          /* not greedily */
        int32_t budget;        /* of the thought that it begins in; −1: no thought */
    } requests[MOST_REQUESTS];
};

static void make_mix(uint64_t seed, struct mix *mix)
{
    uint64_t state = seed * 7919 + 1;
    *mix = (struct mix){.n_requests = 4 + random_below(&state, MOST_REQUESTS - 3)};
    mix->backend = (struct backend_config){.n_slots = 1 + random_below(&state, 6),
                                           .n_context = 160,
                                           .n_blocks = 4 + random_below(&state, 3),
                                           .max_rows = 16 + random_below(&state, 60)};
    mix->most_draft = random_below(&state, 2) * 4;
    for (uint32_t i = 0; i < mix->n_requests; i++) {
        mix->requests[i].n_prompt = 1 + random_below(&state, i % 3 ? 30 : 70);
        mix->requests[i].max_tokens = 1 + random_below(&state, i % 3 ? 90 : 16);
        /* Prompts begin alike, so that some of it is found computed. */
        const uint32_t same = random_below(&state, 80);
        for (uint32_t j = 0; j < mix->requests[i].n_prompt; j++)
            mix->requests[i].prompt[j] = (int32_t)(j < same ? 7 + j * 5 % 300 : random_below(&state, 350));
        mix->requests[i].stop_id = random_below(&state, 8) ? -1 : (int32_t)random_below(&state, 350);
        mix->requests[i].submitted_at = random_below(&state, 8);
        mix->requests[i].cancelled_at = random_below(&state, 5) ? 0 : 1 + random_below(&state, 30);
        mix->requests[i].sampled = random_below(&state, 3) == 0;
    }
    for (uint32_t i = 0; i < mix->n_requests; i++)
        mix->requests[i].budget = (int32_t)random_below(&state, 24) - 12;
}

/* Three start, for each has one block of six at first; they cannot all end with three. Then two with a prompt
 * of more than a block, the same. */
static void make_crowd(struct mix *mix)
{
    *mix = (struct mix){.n_requests = 6,
                        .backend = {.n_slots = 4, .n_context = 160, .n_blocks = 6, .max_rows = 32}};
    for (uint32_t i = 0; i < mix->n_requests; i++) {
        const bool same = i >= 4;
        mix->requests[i].n_prompt = same ? 40 : 20;
        mix->requests[i].max_tokens = same ? 3 : 48;
        mix->requests[i].stop_id = mix->requests[i].budget = -1;
        for (uint32_t j = 0; j < mix->requests[i].n_prompt; j++)
            mix->requests[i].prompt[j] = (int32_t)(7 + (same ? 3 * j : i * 40 + j));
    }
    mix->requests[0].budget = 5; /* for the mixes may have none that is used up */
}

static void submit(struct rig *rig, const struct mix *mix, uint32_t i)
{
    static const struct sampling greedy = SAMPLING_GREEDY;
    const struct sampling sampled = {.temperature = 0.7,
                                     .top_k = 20,
                                     .top_p = 0.9,
                                     .repetition_penalty = 1.1,
                                     SAMPLING_RARE_OFF,
                                     .presence_penalty = 0.1,
                                     .frequency_penalty = 0.1,
                                     .seed = i + 1};
    /* All that looks at ids in their order, and filters that look at all candidates. */
    static const int32_t words[] = {1, 9, 2, 30, 31};
    static const uint32_t breakers[] = {0x10, 0, 0x400};
    struct sampling rare = sampled;
    rare.repeat_last_n = 12;
    rare.top_k = i % 4 == 1 ? 0 : 30;
    rare.top_n_sigma = 2.5;
    rare.typical_p = 0.95;
    rare.xtc_probability = 0.5;
    rare.dynatemp_range = 0.4;
    rare.dry_multiplier = 0.8;
    rare.bad_words = (struct id_sequences){words, 5, 2};
    rare.dry_breakers = (struct dry_breakers){.mask = breakers, .n_words = 3};
    struct error err = {0};
    const struct engine_thinking thinking = {.budget = (uint32_t)mix->requests[i].budget,
                                             .inside = true,
                                             .end = mark_ids,
                                             .n_end = 2,
                                             .again = mark_ids,
                                             .n_again = 2,
                                             .dialect = &thinks};
    const struct engine_request request = {.tag = i,
                                           .prompt = mix->requests[i].prompt,
                                           .n_prompt = mix->requests[i].n_prompt,
                                           .max_tokens = mix->requests[i].max_tokens,
                                           .sampling = !mix->requests[i].sampled ? greedy
                                                       : i % 2                   ? rare
                                                                                 : sampled,
                                           .stop_ids = &mix->requests[i].stop_id,
                                           .n_stop_ids = mix->requests[i].stop_id >= 0,
                                           .thinking = mix->requests[i].budget >= 0 ? &thinking : NULL,
                                           .n_logprobs = i % rig->each_with_logprobs == 0 ? LOGPROBS : 0};
    int r = engine_submit(rig->engine, &request, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

static void step(struct rig *rig, bool *ret_busy)
{
    struct error err = {0};
    int r = engine_step(rig->engine, &err);
    ck_assert_msg(r >= 0, "%s", err.text);
    *ret_busy = r == 1;
}

/* Each alone, to its end. */
static void run_alone(struct rig *rig, const struct mix *mix)
{
    for (uint32_t i = 0; i < mix->n_requests; i++) {
        bool busy = true;
        submit(rig, mix, i);
        while (busy)
            step(rig, &busy);
    }
}

static void run_mixed(struct rig *rig, const struct mix *mix)
{
    bool busy = true;
    for (uint32_t now = 0; busy || now < 12; now++) {
        for (uint32_t i = 0; i < mix->n_requests; i++) {
            if (mix->requests[i].submitted_at == now)
                submit(rig, mix, i);
            if (mix->requests[i].cancelled_at == now && now > 0)
                engine_cancel(rig->engine, i);
        }
        step(rig, &busy);
    }
}

/* What is known of each id that both gave: where the ids before it were the same. Returns by how much the
 * furthest are apart. */
static float check_logprobs(uint64_t seed, uint32_t i, const struct outcome *expected,
                            const struct outcome *o, uint32_t n)
{
    const struct logprob *a = (const struct logprob *)expected->logprobs.data,
                         *b = (const struct logprob *)o->logprobs.data;
    float furthest = 0;
    ck_assert_uint_eq(o->logprobs.len, o->ids.len * LOGPROBS * sizeof *b);
    for (uint32_t j = 0; j < n * LOGPROBS; j++) { /* the most likely may change places with their likes */
        const float apart = fabsf(a[j].logprob - b[j].logprob);
        ck_assert_msg(apart < (float)undecided,
                      "mix %llu, request %u: log probability %u of id %u is %g and not %g",
                      (unsigned long long)seed, i, j % LOGPROBS, j / LOGPROBS, (double)b[j].logprob,
                      (double)a[j].logprob);
        furthest = fmaxf(furthest, apart);
    }
    return furthest;
}

/* Ids agree up to the first that was undecided; returns how many did. */
static uint32_t check_same(uint64_t seed, uint32_t i, bool sampled, const struct outcome *expected,
                           const struct outcome *o)
{
    const struct logprob *logprobs = (const struct logprob *)expected->logprobs.data;
    ck_assert_int_ne(o->end, ENGINE_RUNNING);
    for (uint32_t j = 0; j < o->ids.len; j++) {
        ck_assert_msg(j < expected->ids.len, "mix %llu, request %u: more than %zu ids",
                      (unsigned long long)seed, i, expected->ids.len);
        if (o->ids.data[j] == expected->ids.data[j])
            continue;
        const float margin = logprobs[j * LOGPROBS + 1].logprob - logprobs[j * LOGPROBS + 2].logprob;
        ck_assert_msg(sampled || margin < (float)undecided,
                      "mix %llu, request %u: id %u is %d and not %d, by %g", (unsigned long long)seed, i, j,
                      o->ids.data[j], expected->ids.data[j], (double)margin);
        return j;
    }
    if (o->end != ENGINE_END_CANCELLED) {
        ck_assert_int_eq(o->end, expected->end);
        ck_assert_uint_eq(o->ids.len, expected->ids.len);
    }
    return (uint32_t)o->ids.len;
}

/* Whether its budget has ended a thought, which is then where it must be: a character that has begun gets up
 * to three more ids. */
static bool check_budget(int32_t budget, const struct ids *ids)
{
    if (budget < 0 || ids->len < (size_t)budget + 2 + MOST_PARTS)
        return false;
    for (int32_t i = 0; i + 1 < budget; i++)
        if (memcmp(ids->data + i, mark_ids, sizeof mark_ids) == 0)
            return false; /* it ended by itself */
    int32_t at = budget;
    while (at < budget + MOST_PARTS && memcmp(ids->data + at, mark_ids, sizeof mark_ids) != 0)
        at++;
    ck_assert_mem_eq(ids->data + at, mark_ids, sizeof mark_ids);
    return true;
}

struct tally {
    uint64_t agreed, all, cancelled, preempted, cached, restored, n_sampled, apart, bounded;
    float furthest; /* of log probabilities */
};

/* The same mix alone on the CPU and together on the device, which allocates and records nothing for it.
 * `store`: the segment that all engines on the device share prefixes in. */
static void compare_mix(uint64_t seed, const struct mix *mix, int store, struct tally *tally)
{
    static const struct backend_config plain = {.n_slots = 1, .n_context = 160, .cpu = {.n_threads = 1}};
    static struct rig alone, mixed;
    struct engine_stats stats;
    struct error err = {0};
    struct backend_ops ops = quern_backend;
    ops.open = open_and_tell;
    rig_init(&alone, &backend_cpu, &plain, 0);
    rig_init(&mixed, &ops, &mix->backend, mix->most_draft);
    mixed.each_with_logprobs = 4;
    ck_assert_msg(engine_share_prefixes(mixed.engine, store, &err) == 0, "%s", err.text);
    const struct device_counts before = device_counts(backend_device(opened));
    run_alone(&alone, mix);
    run_mixed(&mixed, mix);
    const struct device_counts after = device_counts(backend_device(opened));
    ck_assert_uint_eq(after.allocations, before.allocations);
    ck_assert_uint_eq(after.captures, before.captures);
    for (uint32_t i = 0; i < mix->n_requests; i++) {
        const bool sampled = mix->requests[i].sampled;
        const uint32_t agreed = check_same(seed, i, sampled, &alone.outcomes[i], &mixed.outcomes[i]);
        if (i % mixed.each_with_logprobs == 0)
            tally->furthest = fmaxf(tally->furthest,
                                    check_logprobs(seed, i, &alone.outcomes[i], &mixed.outcomes[i], agreed));
        tally->agreed += agreed;
        tally->all += mixed.outcomes[i].ids.len;
        tally->cancelled += mixed.outcomes[i].end == ENGINE_END_CANCELLED;
        tally->n_sampled += sampled;
        tally->apart += sampled && agreed < mixed.outcomes[i].ids.len;
        tally->bounded += check_budget(mix->requests[i].budget, &mixed.outcomes[i].ids);
    }
    engine_stats(mixed.engine, &stats);
    ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
    tally->preempted += stats.preemptions;
    tally->cached += stats.cache_hits;
    tally->restored += stats.restores;
    rig_deinit(&alone);
    rig_deinit(&mixed);
}

static uint64_t number_in(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

START_TEST(a_mix_gives_on_the_device_what_each_request_gives_alone_on_the_cpu)
{
    const uint64_t n_mixes = number_in("QUERN_MIXES", 2), first = number_in("QUERN_FIRST_MIX", 1);
    struct tally tally = {0};
    struct mix mix;
    int store;
    ck_assert_int_eq(shm_create("test", 1 << 20, &store), 0);
    make_crowd(&mix);
    compare_mix(0, &mix, store, &tally);
    for (uint64_t seed = first; seed + 1 < first + n_mixes; seed++) {
        make_mix(seed, &mix);
        compare_mix(seed, &mix, store, &tally);
    }
    make_crowd(&mix);
    compare_mix(0, &mix, store, &tally);
    close(store);
    printf("%llu mixes, %llu cancelled, %llu of %llu ids compared, %llu preemptions, %llu prefixes found, "
           "%llu blocks restored, %llu of %llu sampled apart, log probabilities by %.2g\n",
           (unsigned long long)n_mixes + 1, (unsigned long long)tally.cancelled,
           (unsigned long long)tally.agreed, (unsigned long long)tally.all,
           (unsigned long long)tally.preempted, (unsigned long long)tally.cached,
           (unsigned long long)tally.restored, (unsigned long long)tally.apart,
           (unsigned long long)tally.n_sampled, (double)tally.furthest);
    ck_assert_int_eq(rig_compared > 0, getenv("QUERN_HOST_SAMPLING") != NULL);
    ck_assert_uint_gt(tally.preempted, 0);
    ck_assert_uint_gt(tally.cached, 0);
    ck_assert_uint_gt(tally.restored, 0);
    ck_assert_uint_gt(tally.bounded, 0);
    /* Of few bits more is undecided, and some requests part early. */
    ck_assert_uint_gt(tally.agreed, tally.all * (coarse ? 3 : 9) / 10);
    if (!coarse)
        ck_assert_uint_le(tally.apart, tally.n_sampled / 20);
}
END_TEST

START_TEST(mix_after_mix_through_one_engine_allocates_and_records_nothing)
{
    const uint64_t n_rounds = number_in("QUERN_ROUNDS", 1);
    static struct rig rig;
    struct backend_ops ops = quern_backend;
    struct engine_stats stats;
    uint64_t n_requests = 0;
    const struct backend_config config = {.n_slots = 4, .n_context = 160, .n_blocks = 8, .max_rows = 40};
    ops.open = open_and_tell;
    rig_init(&rig, &ops, &config, 4);
    const struct device_counts before = device_counts(backend_device(opened));
    for (uint64_t seed = 1; seed <= n_rounds; seed++) {
        struct mix mix;
        make_mix(seed, &mix);
        for (uint32_t i = 0; i < MOST_REQUESTS; i++) {
            mix.requests[i].max_tokens = 1 + mix.requests[i].max_tokens % 16;
            rig.outcomes[i].ids.len = rig.outcomes[i].logprobs.len = 0;
            rig.outcomes[i].end = ENGINE_RUNNING;
        }
        run_mixed(&rig, &mix);
        for (uint32_t i = 0; i < mix.n_requests; i++)
            ck_assert_int_ne(rig.outcomes[i].end, ENGINE_RUNNING);
        n_requests += mix.n_requests;
        engine_stats(rig.engine, &stats);
        ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
    }
    const struct device_counts after = device_counts(backend_device(opened));
    printf("%llu requests, %llu launches of graphs\n", (unsigned long long)n_requests,
           (unsigned long long)(after.graph_launches - before.graph_launches));
    ck_assert_uint_eq(after.allocations, before.allocations);
    ck_assert_uint_eq(after.captures, before.captures);
    ck_assert_uint_eq(after.bytes, before.bytes);
    rig_deinit(&rig);
}
END_TEST

/* Other slots, other steps, preemption, drafts and prefixes found: nothing of it shows. */
START_TEST(an_invariant_device_gives_the_bits_that_each_request_has_alone)
{
    const struct backend_config one = {.n_slots = 1, .n_context = 160, .max_rows = 64, .invariant = true};
    static struct rig alone, mixed;
    struct mix mix;
    make_mix(1, &mix);
    mix.n_requests = 5;
    mix.backend.n_slots = 3;
    mix.backend.invariant = true;
    for (uint32_t i = 0; i < mix.n_requests; i++) {
        mix.requests[i].max_tokens = 4 + i * 2;
        mix.requests[i].cancelled_at = 0;
    }
    rig_init(&alone, &quern_backend, &one, 0);
    rig_init(&mixed, &quern_backend, &mix.backend, 4);
    run_alone(&alone, &mix);
    run_mixed(&mixed, &mix);
    for (uint32_t i = 0; i < mix.n_requests; i++) {
        const struct outcome *a = &alone.outcomes[i], *b = &mixed.outcomes[i];
        ck_assert_uint_gt(a->ids.len, 0);
        ck_assert_uint_eq(a->ids.len, b->ids.len);
        ck_assert_mem_eq(a->ids.data, b->ids.data, a->ids.len * sizeof *a->ids.data);
        ck_assert_mem_eq(a->logprobs.data, b->logprobs.data, a->logprobs.len);
    }
    rig_deinit(&alone);
    rig_deinit(&mixed);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 560);
    if (getenv("QUERN_MIXES") || getenv("QUERN_ROUNDS"))
        tcase_set_timeout(tests, 36000);
    tcase_add_test(tests, a_mix_gives_on_the_device_what_each_request_gives_alone_on_the_cpu);
    if (getenv("QUERN_FIRST_MIX"))
        return;
    tcase_add_test(tests, an_invariant_device_gives_the_bits_that_each_request_has_alone);
    tcase_add_test(tests, mix_after_mix_through_one_engine_allocates_and_records_nothing);
}

/* As thin as the formats of the weights allow: those of 256 columns have room for themselves. */
static struct synth_shape shape_for(const struct mixture *weights)
{
    struct synth_shape shape = thin_shape;
    if (format_traits(weights->base)->block_elements > shape.n_embd)
        shape.n_embd = shape.n_ff = format_traits(weights->base)->block_elements;
    return shape;
}

/* A recurrent layer and one that attends; a shared expert where there are any. */
static void make_hybrid(struct synth_shape *shape)
{
    shape->delta = (struct delta_net){1, 2, 16, 16, 4, false};
    shape->attention_interval = 2;
    shape->rope_dims = 8;
    shape->n_shared_ff = shape->n_experts > 0 ? 32 : 0;
}

/* Layers of which every second has a window and the last two borrow keys and values, with something of each
 * token for each; or experts beside the plain half. */
static void make_gemma(struct synth_shape *shape)
{
    const bool experts = shape->n_experts > 0;
    shape->biases = false;
    shape->window = 40;
    shape->window_period = 2;
    shape->n_layers = experts ? 2 : 4;
    shape->n_borrowing_layers = experts ? 0 : 2;
    shape->n_layer_embd = experts ? 0 : 8;
    shape->n_expert_ff = experts ? 32 : 0;
}

/* Any two ids with a text of their own, neither a bad word nor the end. */
static void find_mark(void)
{
    dialect_init(&thinks);
    size_t n = 0;
    for (int32_t id = 100, at = 0; at < 2; id++) {
        const struct bytes piece = tokenizer_piece(model->tokenizer, id, false);
        if (piece.len < 1 || piece.len > 20 || utf8_ascii(piece) < piece.len)
            continue;
        memcpy(mark + n, piece.data, piece.len);
        n += piece.len;
        mark_ids[at++] = id;
    }
    thinks.thoughts.known = true;
    thinks.thoughts.open = "no text has this";
    thinks.thoughts.close = mark;
}

int main(void)
{
    char path[] = "/tmp/quern-test-XXXXXX";
    struct error err = {0};
    const char *kept_in = getenv("QUERN_KV_TYPE"), *name = getenv("QUERN_WEIGHTS");
    const struct mixture *weights = mixture_by_name(name ? name : "F32");
    if (!weights) {
        fprintf(stderr, "there are no weights of \"%s\"\n", name);
        return 1;
    }
    struct synth_shape shape = shape_for(weights);
    coarse = format_traits(weights->base)->block_elements > 1;
    shape.n_experts = shape.n_experts_used = (uint32_t)number_in("QUERN_EXPERTS", 0);
    if (shape.n_experts > 0)
        shape.architecture = "qwen3moe";
    if (getenv("QUERN_ARCHITECTURE"))
        shape.architecture = getenv("QUERN_ARCHITECTURE");
    if (shape.architecture &&
        (strncmp(shape.architecture, "qwen35", 6) == 0 || strcmp(shape.architecture, "qwen3next") == 0))
        make_hybrid(&shape);
    if (shape.architecture && strcmp(shape.architecture, "gemma4") == 0)
        make_gemma(&shape);
    close(mkstemp(path));
    if ((kept_in && kv_type_by_name(kept_in, &kv_type, &err) < 0) ||
        synth_write(&shape, weights, 7, path, &err) < 0 || model_open(path, true, &model, &err) < 0) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    unlink(path);
    coarse |= kv_type == BACKEND_KV_Q4;
    undecided = coarse ? 0.2 : undecided;
    find_mark();
    int failed = run_tests("mixes", add);
    model_free(model);
    return failed;
}
