/* SPDX-License-Identifier: MIT */
/* One call of a worker's parts fails, at one place after the other: what was to be done is done whole, or a
 * reason is told, nothing is leaked (as far as a sanitizer looks on), and the next time it is done.
 *
 * A few places of each kind are tried, spread over all of them; with $QUERN_FAULTS_ALL each. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/log.h"
#include "common/files/rundir.h"
#include "common/system/shm.h"
#include "tests/processes/faults/fault.h"
#include "tests/unit/run.h"
#include "model/convert/quantize.h"
#include "model/convert/synth.h"
#include "worker/start/digest.h"
#include "engine/backend/backends.h"
#include "engine/engine.h"
#include "engine/backend/weight_store.h"
#include "text/grammar/grammar.h"
#include "model/files.h"
#include "worker/prepare/prepare.h"
#include "worker/prepare/prompt.h"

#define CHAT_TEMPLATE                                                                                        \
    "{%- macro spell(m) -%}<{{ m.role | upper }}>{{ m.content | trim | replace('x', 'y') }}{%- endmacro -%}" \
    "{%- set ns = namespace(n=0) -%}"                                                                        \
    "{%- for m in messages if m.role != 'tool' -%}{{ spell(m) }}{% set ns.n = ns.n + 1 %}{%- endfor -%}"     \
    "{{ (messages | map(attribute='role') | list | join(',')) ~ ns.n }}"                                     \
    "{{ dict(a=[1, 2], b={'c': none}) | tojson(indent=1) }}{{ 'a-b'.split('-')[::-1] | join }}"

static char folder[RUNDIR_PATH_MAX + 1], model_path[RUNDIR_PATH_MAX + 32];
static char wrong[1024]; /* what was seen to be: Check allocates too, so it is told later */

static void __attribute__((format(printf, 1, 2))) say_wrong(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(wrong, sizeof wrong, format, arguments);
    va_end(arguments);
}

#define EXPECT(condition, ...)                                                                               \
    do {                                                                                                     \
        if (!(condition) && !wrong[0])                                                                       \
            say_wrong(__VA_ARGS__);                                                                          \
    } while (0)

/* Does something from beginning to end. 0: it is done whole; else a code, with the reason in err. */
typedef int work_fn(struct error *err);

/* True when the n-th call of the kind was made. */
static bool fails_at(enum fault_kind kind, unsigned n, work_fn *work)
{
    struct error err = {0};
    wrong[0] = 0;
    fault_arm(kind, n, true);
    int r = work(&err);
    fault_disarm();
    const char *call = fault_fired();
    if (getenv("QUERN_FAULTS_TOLD"))
        fprintf(stderr, "%s %u: %s: %d %s\n", fault_kind_name(kind), n, call ? call : "none", r, err.text);
    ck_assert_msg(!wrong[0], "%s %u (%s): %s", fault_kind_name(kind), n, call ? call : "none", wrong);
    ck_assert_msg(r == 0 || call, "it fails by itself: %d: %s", r, err.text);
    ck_assert_msg(r == 0 || r == -ENOMEM || err.text[0], "%s %u (%s): %d without a reason",
                  fault_kind_name(kind), n, call ? call : "none", r);
    return call != NULL;
}

static void sweep(enum fault_kind kind, unsigned few, work_fn *work)
{
    struct error err = {0};
    unsigned step = 1, k = 0;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    for (unsigned n = 1; fails_at(kind, n, work); n += step, k++)
        if (!all && k > 0 && k % few == 0)
            step *= 2;
    ck_assert_uint_gt(k, 0);
    ck_assert_msg(work(&err) == 0 && !wrong[0], "afterwards: %s%s", err.text, wrong);
}

/* ---- models and prompts ---- */

static int encode(struct prompt_encoder *encoder, const struct prompt *prompt, struct bytes tools,
                  struct error *err)
{
    static struct ids first[4]; /* by form: what comes without a fault */
    struct refusal refusal = {0};
    struct ids ids = {0};
    bool ok = prompt_encode(encoder, prompt, tools, &ids, &refusal);
    if (!ok) {
        EXPECT(refusal.error == PROTO_INTERNAL, "refused as %s: %s", proto_error_name(refusal.error),
               refusal.reason.text);
        ids_deinit(&ids);
        *err = refusal.reason;
        return -ENOMEM;
    }
    struct ids *same = &first[prompt->form];
    if (!fault_fired() && same->len == 0) {
        *same = ids;
        return 0;
    }
    EXPECT(same->len == 0 || (ids.len == same->len && memcmp(ids.data, same->data, ids.len * 4) == 0),
           "%zu ids, and not the %zu there were", ids.len, same->len);
    ids_deinit(&ids);
    return 0;
}

static int decode(struct prompt_encoder *encoder, struct error *err)
{
    static const int32_t ids[] = {260, 261, 262, 300};
    struct refusal refusal = {0};
    struct buffer text = {0};
    bool ok = prompt_decode(encoder, (struct id_list){ids, 4}, true, &text, &refusal);
    buffer_deinit(&text);
    *err = refusal.reason;
    EXPECT(ok || refusal.error == PROTO_INTERNAL, "refused as %s", proto_error_name(refusal.error));
    return ok ? 0 : -ENOMEM;
}

static int serve_prompts(struct error *err)
{
    static const struct chat_message messages[] = {
        {.role = BYTES_LITERAL("system"), .content = BYTES_LITERAL(" Be brief. ")},
        {.role = BYTES_LITERAL("user"), .content = BYTES_LITERAL("Where is the axe? \xf0\x9f\xaa\x93")}};
    const struct prompt text = {.form = PROMPT_TEXT,
                                .text = BYTES_LITERAL("Once upon a time, there was a Grüße-monster 12345.")};
    const struct prompt chat = {.form = PROMPT_CHAT, .chat = {messages, 2}};
    struct prompt_encoder encoder;
    struct model *model;
    int r = model_open(model_path, true, &model, err);
    if (r < 0)
        return r;
    model->chat_template = BYTES_LITERAL(CHAT_TEMPLATE);
    r = prompt_encoder_init(&encoder, model, err);
    if (r == 0) {
        EXPECT(encoder.chat, "no chat: %s", encoder.no_chat.text);
        prompt_encoder_bound(&encoder, 4096);
        r = encode(&encoder, &text, BYTES_LITERAL(""), err);
        if (r == 0)
            r = encode(&encoder, &chat, BYTES_LITERAL(""), err);
        if (r == 0)
            r = decode(&encoder, err);
    }
    prompt_encoder_deinit(&encoder);
    model_free(model);
    return r;
}

START_TEST(models_and_prompts)
{
    sweep(FAULT_MEMORY, 30, serve_prompts);
    sweep(FAULT_DESCRIPTORS, 10, serve_prompts);
    sweep(FAULT_MAPPING, 10, serve_prompts);
}
END_TEST

static int make_preparer(struct error *err)
{
    static const struct prompt_encoder encoder;
    struct preparer *preparer;
    int r = preparer_new(&encoder, true, &preparer, err);
    if (r < 0)
        return r;
    EXPECT(preparer_free(preparer, 20000), "its thread hangs");
    return 0;
}

START_TEST(threads_for_prompts)
{
    sweep(FAULT_MEMORY, 10, make_preparer);
    sweep(FAULT_DESCRIPTORS, 10, make_preparer);
    sweep(FAULT_THREADS, 10, make_preparer);
}
END_TEST

/* ---- digests, weights, quantizing ---- */

static bool go_on(void *arg)
{
    return true;
}

static int make_digest(struct error *err)
{
    static uint8_t first[16];
    static bool known;
    struct model *model;
    struct model_files files;
    struct digest digest = {0};
    int r = model_files_find(model_path, NULL, &files, err);
    if (r == 0)
        r = model_open(model_path, false, &model, err);
    if (r == 0)
        digest_open(&digest, files.key, files.settled);
    model_files_deinit(&files);
    if (r < 0)
        return r;
    r = digest_begin(&digest, model, NULL, 2, go_on, NULL, err);
    if (r == 0)
        r = digest_finish(&digest, go_on, NULL, err);
    if (r == 0) {
        digest_keep(&digest);
        EXPECT(!known || memcmp(first, model->digest, 16) == 0, "another digest");
        memcpy(first, model->digest, 16);
        known = true;
    }
    digest_close(&digest);
    model_free(model);
    return r;
}

/* As two workers do, one after the other. */
static int share_weights(struct error *err)
{
    const struct weight_store_file file = {.key = "faults of tests", .settled = true, .packing = 3};
    static const uint8_t digest[16] = "digest of faults";
    struct weight_store *store, *other;
    void *memory;
    const size_t size = 3 << 20;
    int r = weight_store_open(&file, &store, err);
    if (r < 0)
        return r;
    weight_store_know(store, digest);
    EXPECT(!weight_store_find(store, 7, size), "a segment that nobody made");
    r = weight_store_make(store, 7, size, NULL, NULL, &memory);
    if (r == 0) {
        memset(memory, 77, size);
        r = weight_store_publish(store, err);
        EXPECT(((const uint8_t *)memory)[size - 1] == 77, "what was packed is gone");
    } else {
        error_set(err, r, "no segment: %s", strerror(-r));
    }
    struct error found = {0};
    int second = r == 0 ? weight_store_open(&file, &other, &found) : r;
    if (r == 0 && second == 0) {
        const uint8_t *weights;
        EXPECT(weight_store_wait(other, NULL, NULL, &found) == 0, "a wait for nobody");
        weight_store_know(other, digest);
        weights = weight_store_find(other, 7, size);
        EXPECT(!weights || weights[size - 1] == 77, "other weights than were packed");
        weight_store_free(other);
    } else if (r == 0) {
        *err = found;
        r = second;
    }
    weight_store_free(store);
    return r;
}

static int quantize(struct error *err)
{
    struct gguf *gguf;
    const struct quantize_options options = {.n_threads = 2};
    int r = model_open_files(model_path, &gguf, err);
    if (r < 0)
        return r;
    r = quantize_in_memory(gguf, mixture_by_name("Q8_0"), &options, NULL, NULL, err);
    gguf_free(gguf);
    return r;
}

START_TEST(digests)
{
    sweep(FAULT_MEMORY, 10, make_digest);
    sweep(FAULT_DESCRIPTORS, 10, make_digest);
}
END_TEST

START_TEST(shared_weights)
{
    sweep(FAULT_MEMORY, 10, share_weights);
    sweep(FAULT_DESCRIPTORS, 10, share_weights);
    sweep(FAULT_SPACE, 10, share_weights);
    sweep(FAULT_MAPPING, 10, share_weights);
}
END_TEST

START_TEST(quantizing)
{
    sweep(FAULT_MEMORY, 40, quantize);
}
END_TEST

/* ---- the engine, its caches, and grammars ---- */

static struct model *model;

#define REQUESTS 8

struct answers {
    struct {
        int32_t ids[64];
        uint32_t n;
        enum engine_end end;
        bool has_fault;
    } of[REQUESTS];
};

static void take(void *arg, const struct engine_event *event)
{
    struct answers *answers = arg;
    EXPECT(answers->of[event->tag].end == ENGINE_RUNNING, "something after the end");
    for (uint32_t i = 0; i < event->n_ids && answers->of[event->tag].n < 64; i++)
        answers->of[event->tag].ids[answers->of[event->tag].n++] = event->ids[i];
    answers->of[event->tag].end = event->end;
    answers->of[event->tag].has_fault = event->fault && event->fault[0];
    EXPECT(event->end != ENGINE_END_FAULT || (event->fault && event->fault[0]), "a fault without a word");
}

static int submit_one(struct engine *engine, uint64_t tag, struct grammar *grammar, struct error *err)
{
    static const struct bytes stop = BYTES_LITERAL("zzzz");
    static const struct logit_bias bias = {7, 2};
    int32_t prompt[200];
    const uint32_t n = 40 + (uint32_t)tag % 4 * 45;
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = (int32_t)(10 + (tag / 4 % 2 + i * 7) % 300);
    const struct engine_request request = {
        .tag = tag,
        .prompt = prompt,
        .n_prompt = n,
        .max_tokens = test_is_scaled() ? 4 : 12,
        .sampling = {SAMPLING_RARE_OFF, .temperature = tag % 2, .top_p = 0.9,
                     .repetition_penalty = tag == 3 ? 1.1 : 1, .logit_bias = {&bias, tag == 2}, .seed = tag},
        .stop = &stop,
        .n_stop = 1,
        .n_logprobs = tag == 1 ? 3 : 0,
        .cache_salt = tag % 3 ? BYTES_LITERAL("salt") : BYTES_LITERAL(""),
        .grammar = tag % 2 ? grammar : NULL};
    return engine_submit(engine, &request, err);
}

static int run_dry(struct engine *engine, struct error *err)
{
    int r = 1;
    for (int steps = 0; r == 1 && steps < 2000; steps++)
        r = engine_step(engine, err);
    EXPECT(r <= 0, "it does not come to an end");
    return r;
}

/* What each answer was without a fault. */
static struct answers expected;
static bool is_known;

static int run_requests(struct engine *engine, struct answers *answers, struct grammar *grammar,
                        struct error *err)
{
    int told = 0;
    memset(answers, 0, sizeof *answers);
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        struct error refused = {0};
        int r = submit_one(engine, tag, grammar, &refused);
        EXPECT(r == 0 || (fault_fired() && (r == -ENOMEM || refused.text[0])), "refused: %d %s", r,
               refused.text);
        told = r ? r : told;
        answers->of[tag].end = r ? ENGINE_END_FAULT : ENGINE_RUNNING;
        if (tag % 3 == 2 && run_dry(engine, err) < 0)
            return -EIO;
    }
    if (run_dry(engine, err) < 0)
        return -EIO;
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        EXPECT(answers->of[tag].end != ENGINE_RUNNING, "request %d has no end", (int)tag);
        if (answers->of[tag].end == ENGINE_END_FAULT)
            told = told ? told : -ENOMEM;
        else if (is_known)
            EXPECT(memcmp(&answers->of[tag], &expected.of[tag], sizeof answers->of[tag]) == 0,
                   "request %d has another answer", (int)tag);
    }
    return told;
}

static int use_engine(const struct backend_ops *backend, struct error *err)
{
    static struct answers answers; /* the engine keeps its address */
    struct engine *engine;
    struct grammar *grammar;
    int fd = -1;
    const struct engine_config config = {
        .model = model,
        .backend = backend,
        .most_cached = UINT32_MAX,
        .backend_config = {.n_slots = 3,
                           .n_context = 256,
                           .n_blocks = 14, /* few, so that some are evicted */
                           .cpu = {.n_threads = 2},
                           .progress = NULL}};
    int r = grammar_make(GRAMMAR_GBNF, BYTES_LITERAL("root ::= [a-z0-9 ]+ (\"x\" | root)?"), &grammar, err);
    if (r != 0)
        return r;
    r = engine_new(&config, take, &answers, &engine, err);
    if (r != 0) {
        grammar_free(grammar);
        return r;
    }
    struct error sharing = {0};
    int shared = shm_create("prefixes", 4 << 20, &fd);
    if (shared == 0 && backend->copy_out)
        shared = engine_share_prefixes(engine, fd, &sharing);
    EXPECT(shared == 0 || fault_fired(), "prefixes are not shared: %s", sharing.text);
    r = run_requests(engine, &answers, grammar, err);
    if (!is_known && r == 0 && backend == &backend_cpu) {
        expected = answers;
        is_known = true;
    }
    struct error again = {0};
    bool survives = r != -EIO;
    /* Who survived serves the next ones. */
    if (survives && r != 0 && run_requests(engine, &answers, grammar, &again) != 0)
        EXPECT(false, "the next requests: %s", again.text);
    if (fd >= 0)
        close(fd);
    engine_free(engine);
    grammar_free(grammar);
    return r;
}

static int use_cpu(struct error *err)
{
    return use_engine(&backend_cpu, err);
}

START_TEST(engines)
{
    struct error err = {0};
    ck_assert_int_eq(model_open(model_path, true, &model, &err), 0);
    is_known = false;
    ck_assert_msg(use_cpu(&err) == 0 && is_known && !wrong[0], "%s%s", err.text, wrong);
    sweep(FAULT_MEMORY, 16, use_cpu); /* under ASan, too, which sees what leaks then */
    sweep(FAULT_MAPPING, (unsigned)test_rounds(10), use_cpu);
    sweep(FAULT_DESCRIPTORS, (unsigned)test_rounds(10), use_cpu);
    sweep(FAULT_THREADS, (unsigned)test_rounds(10), use_cpu);
    model = model_free(model);
}
END_TEST

/* ---- grammars ---- */

static enum grammar_kind kind_of_grammar;
static struct bytes text_of_grammar, answer_of_grammar;

static int use_grammar(struct error *err)
{
    struct grammar *grammar;
    struct grammar_answer *answer;
    int r = grammar_make(kind_of_grammar, text_of_grammar, &grammar, err);
    if (r != 0)
        return r;
    r = grammar_answer_new(grammar, &answer, err);
    if (r == 0) {
        r = grammar_answer_take(answer, answer_of_grammar, err);
        EXPECT(r != 0 || grammar_answer_may_end(answer), "it may not end");
        grammar_answer_free(answer);
    }
    grammar_free(grammar);
    return r;
}

START_TEST(grammars)
{
    static const struct {
        enum grammar_kind kind;
        const char *text, *answer;
    } cases[] = {
        {GRAMMAR_GBNF, "root ::= list\nlist ::= \"(\" (list | [a-zä-ü]{1,9})* \")\"", "(ab(c)(ü))"},
        {GRAMMAR_JSON, "", "{\"a\": [1, {\"b\": null}]}"},
        {GRAMMAR_REGEX, "(ab|[^c-e]{2,4})*\\d+", "abxy12"},
        {GRAMMAR_SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"enum\":[\"x\",1]},\"b\":{\"type\":\"array\","
         "\"items\":{"
         "\"$ref\":\"#/$defs/n\"},\"minItems\":1},\"c\":{\"anyOf\":[{\"type\":\"integer\",\"minimum\":3},{"
         "\"type\":\"string\",\"pattern\":\"^a+$\"}]}},\"required\":[\"a\",\"b\"],\"additionalProperties\":"
         "false,\"$defs\":{\"n\":{\"type\":\"number\"}}}",
         "{\"a\":\"x\",\"b\":[1.5,2],\"c\":\"aa\"}"},
        {GRAMMAR_SCHEMA,
         "{\"type\":\"object\",\"properties\":{\"a\":{\"multipleOf\":0.5,\"minimum\":0.5,\"type\":\"number\"}"
         ","
         "\"b\":{\"enum\":[[1],{\"k\":2}]},\"u\":{\"type\":\"array\",\"items\":{\"enum\":[1,null]},"
         "\"uniqueItems\":true}},\"required\":[\"b\"],\"patternProperties\":{\"^x\":{\"not\":{\"type\":"
         "\"integer\"}}},"
         "\"anyOf\":[{\"required\":[\"a\"]},{\"properties\":{\"c\":{\"contains\":{\"const\":3}}}}],"
         "\"unevaluatedProperties\":false}",
         "{\"b\":{\"k\":2},\"u\":[null,1],\"a\":1.5,\"x\":\"1\"}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        kind_of_grammar = cases[i].kind;
        text_of_grammar = bytes_of_string(cases[i].text);
        answer_of_grammar = bytes_of_string(cases[i].answer);
        sweep(FAULT_MEMORY, 40, use_grammar);
    }
}
END_TEST

static void set_up(void)
{
    struct error err = {0};
    ck_assert_int_eq(rundir_temporary(folder, &err), 0);
    snprintf(model_path, sizeof model_path, "%s/model.gguf", folder);
    setenv("XDG_CACHE_HOME", folder, 1);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, model_path, &err),
                     0);
}

static void tear_down(void)
{
    rundir_remove(folder);
}

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, models_and_prompts);
    tcase_add_test(tests, threads_for_prompts);
    tcase_add_test(tests, digests);
    tcase_add_test(tests, shared_weights);
    tcase_add_test(tests, quantizing);
    tcase_add_test(tests, grammars);
    tcase_add_test(tests, engines);
}

int main(void)
{
    log_init("faults");
    return run_tests("faults", add);
}
