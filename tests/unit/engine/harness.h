/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_ENGINE_HARNESS_H
#define TESTS_UNIT_ENGINE_HARNESS_H

/* An engine on the fake backend, and its output per tag, checked event by event. */

#include "tests/unit/run.h"
#include "tests/unit/engine/fake.h"
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#define MOST_TAGS 4096

struct outcome {
    struct ids ids;
    struct buffer text;
    enum engine_end end;
    char fault[128];
    uint32_t n_prompt, n_output, n_drafted, n_accepted;
    uint32_t n_before; /* ids of an answer that is resumed */
    uint64_t prefill_ns, decode_ns, wait_ns, lookup_ns;
    uint64_t ended_as;             /* 1 for the first to end, … */
    uint64_t first_as;             /* 1 for the first to get an id, … */
    struct engine_reading reading; /* the last one */
    int n_readings;
};

struct harness {
    struct engine *engine;
    struct outcome outcomes[MOST_TAGS]; /* by tag */
    uint64_t n_ended, n_begun;
};

static inline void harness_sink(void *arg, const struct engine_event *event)
{
    struct harness *h = arg;
    struct outcome *o = &h->outcomes[event->tag];
    ck_assert_int_eq(o->end, ENGINE_RUNNING); /* nothing follows the end */
    if (event->reading) {
        ck_assert(event->n_ids == 0 && event->end == ENGINE_RUNNING && o->ids.len == 0);
        ck_assert_uint_ge(event->reading->n_read, o->reading.n_read);
        o->reading = *event->reading;
        o->n_readings++;
        return;
    }
    ck_assert(event->n_ids > 0 || event->end != ENGINE_RUNNING);
    if (o->ids.len == 0 && event->n_ids > 0)
        o->first_as = ++h->n_begun;
    ids_append(&o->ids, event->ids, event->n_ids);
    buffer_append(&o->text, event->text.data, event->text.len);
    ck_assert((event->end == ENGINE_RUNNING) == (event->totals == NULL));
    if (event->end == ENGINE_RUNNING)
        return;
    o->end = event->end;
    o->n_prompt = event->totals->n_prompt;
    o->n_output = event->totals->n_output;
    o->n_drafted = event->totals->n_drafted;
    o->n_accepted = event->totals->n_accepted;
    ck_assert_uint_le(o->n_accepted, o->n_drafted);
    ck_assert_uint_le(o->n_accepted, o->ids.len);
    o->prefill_ns = event->totals->prefill_ns;
    o->decode_ns = event->totals->decode_ns;
    o->wait_ns = event->totals->wait_ns;
    o->lookup_ns = event->totals->lookup_ns;
    o->ended_as = ++h->n_ended;
    ck_assert_uint_eq(event->totals->n_output, o->n_before + o->ids.len);
    ck_assert((event->end == ENGINE_END_FAULT || event->end == ENGINE_END_INVALID) == (event->fault != NULL));
    snprintf(o->fault, sizeof o->fault, "%s", event->fault ? event->fault : "");
}

static inline struct harness *harness_new(const struct backend_config *backend, uint32_t max_waiting)
{
    struct harness *h = calloc(1, sizeof *h);
    struct engine_config config = {.model = &fake_model,
                                   .backend = &backend_fake,
                                   .give_back = fake_give_back,
                                   .most_cached = UINT32_MAX,
                                   .max_waiting = max_waiting};
    if (backend)
        config.backend_config = *backend;
    struct error err = {0};
    ck_assert_msg(engine_new(&config, harness_sink, h, &h->engine, &err) == 0, "%s", err.text);
    return h;
}

/* Loop tests run each case on both kinds of backend, synchronous and asynchronous; the third and the fourth
 * kind have a second group of KV blocks, with a window and little more than a sequence's blocks. */
static inline struct harness *harness_start(int kind, struct backend_config backend)
{
    bool asynchronous = kind % 2 > 0;
    fake_script = (struct fake_script){.asynchronous = asynchronous, .again = asynchronous ? 1 : 0};
    if (kind >= 2)
        fake_script.window = 40, fake_script.window_blocks = 6;
    return harness_new(&backend, 0);
}

static inline struct engine_stats stats_of(const struct harness *h)
{
    struct engine_stats stats;
    engine_stats(h->engine, &stats);
    return stats;
}

static inline void harness_free(struct harness *h)
{
    engine_free(h->engine);
    for (int i = 0; i < MOST_TAGS; i++) {
        ids_deinit(&h->outcomes[i].ids);
        buffer_deinit(&h->outcomes[i].text);
    }
    free(h);
}

/* Forgets a tag's outcome, to use the tag again. */
static inline void harness_forget(struct harness *h, uint64_t tag)
{
    ids_deinit(&h->outcomes[tag].ids);
    buffer_deinit(&h->outcomes[tag].text);
    h->outcomes[tag] = (struct outcome){0};
}

/* A request whose prompt depends on its tag: all prompts are parts of one text that repeats every 26 ids. */
static inline struct engine_request request_of(uint64_t tag, uint32_t n_prompt, uint32_t max_tokens)
{
    static int32_t text[MOST_TAGS + 26];
    for (uint32_t i = 0; i < MOST_TAGS + 26; i++)
        text[i] = (int32_t)('A' + i * 3 % 26);
    return (struct engine_request){.tag = tag,
                                   .prompt = text + tag * 11 % 26,
                                   .n_prompt = n_prompt,
                                   .max_tokens = max_tokens,
                                   .sampling = {SAMPLING_OFF, .seed = tag}};
}

/* A seed with which the request's answer has at least `n` ids. */
static inline uint64_t lasting_seed(const struct engine_request *request, uint32_t n)
{
    int32_t all[8192];
    memcpy(all, request->prompt, request->n_prompt * sizeof *all);
    for (uint64_t seed = 1;; seed++) {
        uint32_t made = 0;
        while (made < n &&
               (all[request->n_prompt + made] = fake_next(seed, all, request->n_prompt + made)) != FAKE_END)
            made++;
        if (made == n)
            return seed;
    }
}

static inline void submit(struct harness *h, const struct engine_request *request)
{
    struct error err = {0};
    int r = engine_submit(h->engine, request, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

static inline void run_dry(struct harness *h)
{
    struct error err = {0};
    int r = 1;
    for (uint64_t i = 0; r == 1; i++) {
        ck_assert_msg(i < 1000000, "the engine hangs");
        r = engine_step(h->engine, &err);
    }
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

/* Checks that nothing is in use. */
static inline void check_idle(struct harness *h)
{
    struct engine_stats stats;
    engine_stats(h->engine, &stats);
    ck_assert_uint_eq(stats.active, 0);
    ck_assert_uint_eq(stats.waiting, 0);
    ck_assert_uint_eq(stats.waiting_tokens, 0);
    ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
    for (uint32_t g = 0; g < BACKEND_MOST_GROUPS; g++)
        ck_assert_uint_eq(stats.blocks_held[g], 0);
    ck_assert_uint_eq(fake_script.open_slots, 0);
}

/* Computes the request's undisturbed answer without an engine. Returns the number of ids. */
static inline uint32_t undisturbed(const struct engine_request *request, int32_t *ret_ids,
                                   struct buffer *ret_text, enum engine_end *ret_end)
{
    int32_t all[8192];
    memcpy(all, request->prompt, request->n_prompt * sizeof *all);
    *ret_end = ENGINE_END_LENGTH;
    uint32_t n = 0;
    while (n < request->max_tokens) {
        int32_t id = fake_next(request->sampling.seed, all, request->n_prompt + n);
        if (id == FAKE_END && n < request->min_tokens)
            id = FAKE_EARLY;
        all[request->n_prompt + n] = ret_ids[n] = id;
        n++;
        if (id == FAKE_END) {
            *ret_end = ENGINE_END_STOP;
            break;
        }
        uint8_t byte = (uint8_t)id;
        buffer_append(ret_text, &byte, 1);
        for (uint32_t i = 0; i < request->n_stop; i++) {
            size_t len = request->stop[i].len;
            if (n > request->min_tokens && ret_text->len >= len &&
                memcmp(ret_text->data + ret_text->len - len, request->stop[i].data, len) == 0) {
                ret_text->len -= len;
                *ret_end = ENGINE_END_STOP;
                return n;
            }
        }
    }
    return n;
}

/* Checks that the outcome is the undisturbed answer, or its beginning if the request was cut off. */
static inline void check_outcome(const struct harness *h, const struct engine_request *request)
{
    const struct outcome *o = &h->outcomes[request->tag];
    int32_t ids[8192];
    struct buffer text = {0};
    enum engine_end end;
    uint32_t n = undisturbed(request, ids, &text, &end);
    bool whole = o->end == ENGINE_END_STOP || o->end == ENGINE_END_LENGTH;
    ck_assert_int_ne(o->end, ENGINE_RUNNING);
    ck_assert_uint_eq(o->n_prompt, request->n_prompt);
    if (whole) {
        ck_assert_int_eq(o->end, end);
        ck_assert_uint_eq(o->ids.len, n);
        ck_assert_uint_eq(o->text.len, text.len);
    }
    ck_assert_uint_le(o->ids.len, n);
    ck_assert_uint_le(o->text.len, o->ids.len);
    if (o->ids.len)
        ck_assert_mem_eq(o->ids.data, ids, o->ids.len * sizeof *ids);
    if (o->text.len && o->text.len <= text.len)
        ck_assert_mem_eq(o->text.data, text.data, o->text.len);
    buffer_deinit(&text);
}

#endif
