/* SPDX-License-Identifier: MIT */
/* Mixes: what a request is answered with does not depend on the caches.
 *
 *   mixes [--mixes N] [--device cpu|emu] [--kv-type TYPE] [--architecture NAME] [--seed N]
 *
 * Each request alone, on an engine that keeps nothing, says what is right. Then random mixes of them go to
 * two engines that cache prefixes and share a store, with so few KV blocks that sequences are preempted and
 * what is kept is given up: requests begin as others did, come as the next turn of a conversation, under
 * another salt, with their cache off, half done elsewhere, and are cancelled between steps or in the middle
 * of one; a quarter follow a grammar; half of the engines make drafts, which are right for a while; engines
 * are thrown away with all that they have under way, and others of another size take their place, which have
 * nothing but the store. Ids, text and the bits of log probabilities must be the same.
 *
 * On a device that is emulated engines are opened `invariant`. Prints what has happened, and exits 1 at the
 * first difference. */

#include <argp.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/hash.h"
#include "common/system/shm.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/cpu/small_shapes.h"
#include "engine/backend/backends.h"
#include "engine/engine.h"
#include "engine/prompt_lookup.h"
#include "engine/backend/kv_type.h"
#include "text/grammar/grammar.h"
#include "model/model.h"

#define ENGINES      2
#define MOST_AT_ONCE 10 /* requests of a mix */
#define MOST_KINDS   2000
#define MOST_PROMPT  180
#define MOST_TOKENS  64
#define CONTEXT      256
#define WINDOW       40
#define NO_CANCEL    UINT64_MAX
#define STORE_BLOCKS 48 /* that the store has room for, about: far fewer than there are prefixes */

struct options {
    const char *device, *kv_type, *architecture;
    uint64_t mixes, seed;
};

/* ---- what is asked, and what is right ---- */

struct answer {
    struct ids ids;
    struct buffer text, logprobs;
    enum engine_end end;
};

struct kind { /* a request */
    bool made, uncached;
    int32_t prompt[MOST_PROMPT];
    uint32_t n_prompt, max_tokens;
    struct sampling sampling;
    struct bytes salt;
    uint32_t grammar; /* its number, from 1 on; 0: none */
    struct answer right;
};

/* One that is under way, or was. */
struct asked {
    const struct kind *kind;
    uint32_t engine, n_output; /* made elsewhere */
    uint64_t at, cancel_at;    /* in rounds of the mix */
    struct answer answer;
};

struct rig {
    struct engine *engine;
    struct grammar *grammars[2]; /* which one engine at a time may use */
    struct asked *asked;         /* by tag */
    uint64_t cancel_in; /* progress calls until one is cancelled in the middle of a step; 0: none is */
    uint64_t cancel_tag;
};

struct tally {
    uint64_t requests, ids, cancelled, moved, thrown_away;
    uint64_t preemptions, evictions, restores, cached, prefilled, drafted, accepted;
};

/* Where the architecture has layers with windows, requests outgrow them. */
static struct synth_shape shape;

static struct model *model;
static struct backend_choice backend;
static enum backend_kv_type kv_type;
static struct kind kinds[MOST_KINDS];
static uint32_t n_kinds;
static uint64_t state; /* of what is random */

static void fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
static void fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("mixes: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    exit(EXIT_FAILURE);
}

static uint32_t draw(uint32_t n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((state >> 33) % n);
}

/* ---- drafts ---- */

static bool begins_with(const int32_t *ids, uint32_t n, const struct kind *kind)
{
    return kind->made && kind->n_prompt <= n && memcmp(ids, kind->prompt, kind->n_prompt * sizeof *ids) == 0;
}

/* Knows what requests with this prompt are answered, and is wrong now and then; its drafts are of every
 * length. */
static uint32_t guess(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    uint32_t k = 0, made = 0;
    while (k < n_kinds && !begins_with(ids, n, &kinds[k]))
        k++;
    if (k == n_kinds)
        return prompt_lookup(arg, ids, n, most, ret_draft);
    const struct ids *right = &kinds[k].right.ids;
    const uint32_t length = 1 + n * 7 % most;
    for (uint32_t at = n - kinds[k].n_prompt; made < length && at < right->len; at++, made++)
        ret_draft[made] = (n + made) % 5 ? right->data[at] : 3;
    return made;
}

/* ---- engines ---- */

static void sink(void *arg, const struct engine_event *event)
{
    struct rig *rig = arg;
    struct answer *answer = &rig->asked[event->tag].answer;
    if (answer->end != ENGINE_RUNNING)
        fail("request %llu goes on behind its end", (unsigned long long)event->tag);
    if (event->fault)
        fail("request %llu: %s", (unsigned long long)event->tag, event->fault);
    if (ids_append(&answer->ids, event->ids, event->n_ids) < 0 ||
        buffer_append(&answer->text, event->text.data, event->text.len) < 0 ||
        buffer_append(&answer->logprobs, event->logprobs,
                      event->n_ids * event->n_logprobs * sizeof *event->logprobs) < 0)
        fail("out of memory");
    answer->end = event->end;
}

static bool progress(void *arg)
{
    struct rig *rig = arg;
    if (!rig->engine)
        return false;
    if (rig->cancel_in > 0 && --rig->cancel_in == 0)
        engine_cancel(rig->engine, rig->cancel_tag);
    return engine_step_is_moot(rig->engine);
}

static void open_grammars(struct rig *rig)
{
    static const char text[] = "root ::= word (\", \" word)+\nword ::= [a-z]{1,9} | \"(\" word \")\"";
    struct error err = {0};
    if (grammar_make(GRAMMAR_JSON, BYTES_LITERAL(""), &rig->grammars[0], &err) != 0 ||
        grammar_make(GRAMMAR_GBNF, bytes_of_string(text), &rig->grammars[1], &err) != 0)
        fail("%s", err.text);
}

static void open_engine(struct rig *rig, struct backend_config config, bool cached, int store,
                        uint32_t most_draft)
{
    struct error err = {0};
    config.n_context = CONTEXT;
    config.kv_type = kv_type;
    config.invariant = backend.n_devices > 0;
    config.progress = progress;
    config.progress_arg = rig;
    rig->engine = NULL;
    rig->cancel_in = 0;
    open_grammars(rig);
    const struct engine_config engine = {.model = model,
                                         .backend = backend.ops,
                                         .most_cached = cached ? UINT32_MAX : 0,
                                         .draft = most_draft > 0 ? guess : NULL,
                                         .most_draft = most_draft,
                                         .backend_config = config};
    if (engine_new(&engine, sink, rig, &rig->engine, &err) < 0)
        fail("%s", err.text);
    if (cached && engine_share_prefixes(rig->engine, store, &err) < 0)
        fail("%s", err.text);
}

static void close_engine(struct rig *rig, struct tally *tally)
{
    struct engine_stats stats;
    engine_stats(rig->engine, &stats);
    tally->preemptions += stats.preemptions;
    tally->evictions += stats.evictions;
    tally->restores += stats.restores;
    tally->cached += stats.cache_hits;
    tally->prefilled += stats.prefill_tokens;
    tally->drafted += stats.drafted;
    tally->accepted += stats.accepted;
    rig->engine = engine_free(rig->engine);
    for (int i = 0; i < 2; i++)
        rig->grammars[i] = grammar_free(rig->grammars[i]);
}

static void submit(struct rig *rig, uint64_t tag)
{
    const struct asked *asked = &rig->asked[tag];
    const struct kind *kind = asked->kind;
    struct error err = {0};
    const struct engine_request request = {.tag = tag,
                                           .prompt = kind->prompt,
                                           .n_prompt = kind->n_prompt,
                                           .output = kind->right.ids.data,
                                           .n_output = asked->n_output,
                                           .max_tokens = kind->max_tokens,
                                           .sampling = kind->sampling,
                                           .n_logprobs = 1,
                                           .cache_salt = kind->salt,
                                           .uncached = kind->uncached,
                                           .grammar =
                                               kind->grammar ? rig->grammars[kind->grammar - 1] : NULL};
    if (engine_submit(rig->engine, &request, &err) != 0)
        fail("request %llu: %s", (unsigned long long)tag, err.text);
}

static bool step(struct rig *rig)
{
    struct error err = {0};
    int r = engine_step(rig->engine, &err);
    if (r < 0)
        fail("%s", err.text);
    return r == 1;
}

static void answer_deinit(struct answer *answer)
{
    ids_deinit(&answer->ids);
    buffer_deinit(&answer->text);
    buffer_deinit(&answer->logprobs);
    *answer = (struct answer){0};
}

/* ---- kinds ---- */

/* Ids of a sequence that has a name. */
static int32_t id_of(uint64_t name, uint32_t i)
{
    const uint64_t place = i;
    return (int32_t)(3 + hash64(&place, sizeof place, name) % 320);
}

static struct kind *kind_of(struct rig *alone, uint32_t k);

/* The next turn of the conversation before it: all that was said, and a new question. */
static void continue_prompt(struct rig *alone, struct kind *kind, uint32_t k)
{
    const struct kind *before = kind_of(alone, k - 1);
    uint32_t n = before->n_prompt + (uint32_t)before->right.ids.len;
    kind->n_prompt = n < MOST_PROMPT ? n : MOST_PROMPT;
    for (uint32_t i = 0; i < kind->n_prompt; i++)
        kind->prompt[i] =
            i < before->n_prompt ? before->prompt[i] : before->right.ids.data[i - before->n_prompt];
    while (kind->n_prompt < MOST_PROMPT && kind->n_prompt < n + 10) {
        kind->prompt[kind->n_prompt] = id_of(1000 + k, kind->n_prompt);
        kind->n_prompt++;
    }
    kind->salt = before->salt;
}

static void make_kind(struct rig *alone, struct kind *kind, uint32_t k)
{
    static const char *const salts[] = {"", "", "one tenant", "another"};
    const uint32_t family = (k * 7 + k / 31) % 12, same = 16 * (family % 9);
    kind->salt = bytes_of_string(salts[k % 4]);
    kind->max_tokens = 1 + k * 13 % MOST_TOKENS;
    kind->uncached = k % 11 == 0;
    kind->grammar = k % 4 == 1 ? 1 + k / 4 % 2 : 0;
    kind->sampling = (struct sampling){
        SAMPLING_RARE_OFF, .temperature = k % 3 ? 0.9f : 0,        .top_k = k % 2 ? 40 : 0,
        .top_p = 0.95f,    .repetition_penalty = k % 7 ? 1 : 1.2f, .frequency_penalty = k % 6 ? 0 : 0.3,
        .seed = k};
    if (k % 5 == 4) {
        continue_prompt(alone, kind, k);
        return;
    }
    kind->n_prompt = same + 1 + k * 37 % (MOST_PROMPT - 9 * 16);
    for (uint32_t i = 0; i < kind->n_prompt; i++)
        kind->prompt[i] = id_of(i < same ? family : 100 + k, i);
}

/* What is right is found out when it is needed first. */
static struct kind *kind_of(struct rig *alone, uint32_t k)
{
    struct kind *kind = &kinds[k];
    struct asked asked = {.kind = kind};
    if (kind->made)
        return kind;
    make_kind(alone, kind, k);
    alone->asked = &asked;
    submit(alone, 0);
    while (step(alone))
        ;
    kind->right = asked.answer;
    kind->made = true;
    return kind;
}

/* ---- mixes ---- */

static void draw_asked(struct rig *alone, struct asked *asked)
{
    const struct kind *kind = kind_of(alone, draw(n_kinds));
    answer_deinit(&asked->answer);
    *asked = (struct asked){
        .kind = kind, .engine = draw(ENGINES), .at = draw(12), .cancel_at = draw(6) ? NO_CANCEL : draw(40)};
    if (draw(6) == 0 && kind->right.ids.len > 1)
        asked->n_output = 1 + draw((uint32_t)kind->right.ids.len - 1);
}

/* Of a whole answer all, of one that was cancelled its beginning; what was made elsewhere comes no more. */
static void check(uint64_t mix, uint64_t tag, const struct asked *asked)
{
    const struct answer *right = &asked->kind->right, *answer = &asked->answer;
    const uint64_t kind = (uint64_t)(asked->kind - kinds);
    const size_t before = asked->n_output, n = answer->ids.len;
    const bool whole = answer->end != ENGINE_END_CANCELLED;
    if (answer->end == ENGINE_RUNNING)
        fail("mix %llu: request %llu has not ended", (unsigned long long)mix, (unsigned long long)tag);
    for (size_t i = 0; i < n; i++) {
        if (before + i >= right->ids.len)
            fail("mix %llu, kind %llu: more than %zu ids", (unsigned long long)mix, (unsigned long long)kind,
                 right->ids.len);
        if (answer->ids.data[i] != right->ids.data[before + i])
            fail("mix %llu, kind %llu: id %zu is %d, not %d", (unsigned long long)mix,
                 (unsigned long long)kind, before + i, answer->ids.data[i], right->ids.data[before + i]);
    }
    if (n > 0 &&
        memcmp(answer->logprobs.data, (const uint8_t *)right->logprobs.data + before * sizeof(struct logprob),
               n * sizeof(struct logprob)) != 0)
        fail("mix %llu, kind %llu: other log probabilities", (unsigned long long)mix,
             (unsigned long long)kind);
    size_t len = answer->text.len;
    if (!whole && len >= 3 && memcmp(answer->text.data + len - 3, "\xef\xbf\xbd", 3) == 0)
        len -= 3; /* the beginning of a sequence of bytes, which a cancel leaves without its end */
    if (len > right->text.len || (whole && len != right->text.len) ||
        (len > 0 && memcmp(answer->text.data, right->text.data, len) != 0))
        fail("mix %llu, kind %llu: another text", (unsigned long long)mix, (unsigned long long)kind);
    if (whole && (before + n != right->ids.len || answer->end != right->end))
        fail("mix %llu, kind %llu: %zu of %zu ids", (unsigned long long)mix, (unsigned long long)kind,
             before + n, right->ids.len);
}

/* One of the largest requests fits, two do not. */
/* Where there are windows a third of them have as many blocks as they want: few of those groups. */
static struct backend_config draw_config(void)
{
    return (struct backend_config){.n_slots = 1 + draw(6),
                                   .n_blocks = shape.window > 0 && draw(3) == 0 ? 0 : 8 + draw(3),
                                   .max_rows = 16 + draw(80),
                                   .cpu = {.n_threads = 1 + (draw(8) == 0)}};
}

static uint32_t draw_draft(void)
{
    return draw(2) ? 1 + draw(7) : 0;
}

static void check_idle(uint64_t mix, const struct rig *rig)
{
    struct engine_stats stats;
    engine_stats(rig->engine, &stats);
    if (stats.active + stats.waiting > 0 || stats.blocks_free != stats.blocks_total)
        fail("mix %llu: %u active, %u waiting, %u of %u blocks free", (unsigned long long)mix, stats.active,
             stats.waiting, stats.blocks_free, stats.blocks_total);
    for (uint32_t g = 0; g < BACKEND_MOST_GROUPS; g++)
        if (stats.blocks_held[g] > 0)
            fail("mix %llu: %u blocks of group %u are held", (unsigned long long)mix, stats.blocks_held[g],
                 g);
}

/* True: all have ended. False: an engine was thrown away before. */
static bool run_mix(struct rig *rigs, struct asked *asked, uint32_t n, uint64_t until)
{
    bool busy = true;
    for (uint64_t now = 0; busy || now < 12; now++) {
        if (now == until)
            return false;
        busy = false;
        for (uint32_t i = 0; i < n; i++) {
            struct rig *rig = &rigs[asked[i].engine];
            if (asked[i].at == now)
                submit(rig, i);
            if (asked[i].cancel_at == now && now % 2) {
                engine_cancel(rig->engine, i);
            } else if (asked[i].cancel_at == now) {
                rig->cancel_in = 1 + now % 3;
                rig->cancel_tag = i;
            }
        }
        for (uint32_t e = 0; e < ENGINES; e++)
            busy |= step(&rigs[e]);
    }
    return true;
}

static void count(const struct asked *asked, struct tally *tally)
{
    tally->requests++;
    tally->ids += asked->answer.ids.len;
    tally->cancelled += asked->answer.end == ENGINE_END_CANCELLED;
    tally->moved += asked->n_output > 0;
}

static void run_mixes(const struct options *options, struct rig *alone, int store, struct tally *tally)
{
    static struct asked asked[MOST_AT_ONCE];
    struct rig rigs[ENGINES] = {0};
    for (uint32_t e = 0; e < ENGINES; e++)
        open_engine(&rigs[e], draw_config(), true, store, draw_draft());
    for (uint64_t mix = 0; mix < options->mixes; mix++) {
        const uint32_t n = 3 + draw(MOST_AT_ONCE - 2), thrown = draw(ENGINES);
        const uint64_t until = draw(12) ? UINT64_MAX : draw(30);
        for (uint32_t i = 0; i < n; i++)
            draw_asked(alone, &asked[i]);
        for (uint32_t e = 0; e < ENGINES; e++)
            rigs[e].asked = asked;
        if (run_mix(rigs, asked, n, until)) {
            for (uint32_t i = 0; i < n; i++) {
                check(mix, i, &asked[i]);
                count(&asked[i], tally);
            }
            for (uint32_t e = 0; e < ENGINES; e++)
                check_idle(mix, &rigs[e]);
            continue;
        }
        for (uint32_t i = 0; i < n; i++) { /* what was said until then must be right too */
            if (asked[i].answer.end == ENGINE_RUNNING)
                asked[i].answer.end = ENGINE_END_CANCELLED;
            check(mix, i, &asked[i]);
            asked[i].answer.end = ENGINE_RUNNING;
        }
        close_engine(&rigs[thrown], tally);
        open_engine(&rigs[thrown], draw_config(), true, store, draw_draft());
        for (uint32_t i = 0; i < n; i++)
            engine_cancel(rigs[!thrown].engine, i);
        while (step(&rigs[!thrown]))
            ;
        tally->thrown_away++;
    }
    for (uint32_t e = 0; e < ENGINES; e++)
        close_engine(&rigs[e], tally);
    for (uint32_t i = 0; i < MOST_AT_ONCE; i++)
        answer_deinit(&asked[i].answer);
}

/* ---- the whole ---- */

static void open_model(const struct options *options)
{
    char path[] = "/tmp/quern-mixes-XXXXXX";
    struct error err = {0};
    close(mkstemp(path));
    shape = thin_shape;
    shape.n_context = CONTEXT;
    shape.architecture = options->architecture;
    shape.window = options->architecture ? WINDOW : 0;
    shape.cap = shape.logit_cap = options->architecture && !strcmp(options->architecture, "gemma2") ? 30 : 0;
    if (options->architecture && strncmp(options->architecture, "qwen35", 6) == 0) {
        shape.window = 0;
        shape.delta = (struct delta_net){1, 2, 16, 16, 4, false};
        shape.attention_interval = 2;
    }
    if (options->architecture && !strcmp(options->architecture, "gpt-oss")) {
        shape.biases = false;
        shape.n_experts = 4;
        shape.n_experts_used = 2;
        shape.n_expert_ff = 32;
    }
    if (options->architecture && !strcmp(options->architecture, "gemma4")) {
        shape.n_layers = 4;
        shape.window_period = shape.n_borrowing_layers = 2;
        shape.n_layer_embd = 16;
    }
    if (synth_write(&shape, mixture_by_name("Q8_0"), 5, path, &err) < 0 ||
        model_open(path, true, &model, &err) < 0)
        fail("%s", err.text);
    unlink(path);
    setenv("QUERN_PLUGINS", build_path("."), 0);
    setenv("QUERN_UNCHECKED", "1", 0); /* many engines are opened; the gate has tests of its own */
    if (backend_choose(options->device, model, &backend, &err) < 0 ||
        (options->kv_type && kv_type_by_name(options->kv_type, &kv_type, &err) < 0))
        fail("%s", err.text);
}

static int open_store(struct rig *alone)
{
    const struct backend_info *info = engine_backend_info(alone->engine);
    size_t bytes = 512;
    int fd;
    for (uint32_t g = 0; g < info->n_groups; g++)
        bytes += info->groups[g].block_bytes;
    if (shm_create("mixes", 4096 + STORE_BLOCKS * bytes, &fd) < 0)
        fail("not enough memory for a store");
    return fd;
}

static error_t parse(int key, char *arg, struct argp_state *argp)
{
    struct options *options = argp->input;
    switch (key) {
    case 'm':
        options->mixes = strtoull(arg, NULL, 10);
        return 0;
    case 'd':
        options->device = arg;
        return 0;
    case 'k':
        options->kv_type = arg;
        return 0;
    case 'a':
        options->architecture = arg;
        return 0;
    case 's':
        options->seed = strtoull(arg, NULL, 10);
        return 0;
    case ARGP_KEY_END:
        if (options->mixes == 0)
            argp_error(argp, "--mixes: at least 1");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static const struct argp_option table[] = {{"mixes", 'm', "N", 0, "How many (200)", 0},
                                               {"device", 'd', "NAME", 0, "cpu or emu (cpu)", 0},
                                               {"kv-type", 'k', "TYPE", 0, "Of keys and values (f16)", 0},
                                               {"architecture", 'a', "NAME", 0, "Of the model (llama)", 0},
                                               {"seed", 's', "N", 0, "Of what is drawn (1)", 0},
                                               {0}};
    const struct argp argp = {table, parse, NULL, "Compares answers with caches and without.",
                              NULL,  NULL,  NULL};
    struct options options = {.device = "cpu", .mixes = 200, .seed = 1};
    struct rig alone = {0};
    struct tally tally = {0}, plain = {0};
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    if (getenv("QUERN_TEST_SCALE")) /* a sanitizer makes everything slow */
        options.mixes = (options.mixes + 1) / 2;
    state = options.seed;
    n_kinds = options.mixes / 4 + 10 < MOST_KINDS ? (uint32_t)options.mixes / 4 + 10 : MOST_KINDS;
    open_model(&options);
    open_engine(&alone, (struct backend_config){.n_slots = 1, .cpu = {.n_threads = 1}}, false, -1, 0);
    int store = open_store(&alone);
    run_mixes(&options, &alone, store, &tally);
    close_engine(&alone, &plain);
    close(store);
    for (uint32_t k = 0; k < n_kinds; k++)
        answer_deinit(&kinds[k].right);
    model_free(model);
    printf(
        "%llu mixes of %u requests: %llu answered, %llu ids, all as without caches; %llu cancelled, %llu "
        "half done elsewhere, %llu engines thrown away; %llu preemptions, %llu blocks evicted, %llu restored "
        "from the store; %llu ids found, %llu computed; %llu of %llu drafted ids right\n",
        (unsigned long long)options.mixes, n_kinds, (unsigned long long)tally.requests,
        (unsigned long long)tally.ids, (unsigned long long)tally.cancelled, (unsigned long long)tally.moved,
        (unsigned long long)tally.thrown_away, (unsigned long long)tally.preemptions,
        (unsigned long long)tally.evictions, (unsigned long long)tally.restores,
        (unsigned long long)tally.cached, (unsigned long long)tally.prefilled,
        (unsigned long long)tally.accepted, (unsigned long long)tally.drafted);
    if (options.mixes < 50)
        return EXIT_SUCCESS;
    if (tally.cancelled == 0 || tally.moved == 0 || tally.preemptions == 0 || tally.evictions == 0 ||
        tally.restores == 0 || tally.cached == 0 || tally.accepted == 0 || tally.accepted == tally.drafted)
        fail("too few mixes: something that was to happen has not");
    return EXIT_SUCCESS;
}
