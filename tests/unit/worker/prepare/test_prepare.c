/* SPDX-License-Identifier: MIT */
/* The preparer against prompt_encode called directly: the same ids, in the promised order, and nothing of
 * what was taken back. The linker puts __wrap_prompt_encode between the two, so that a test says how long a
 * preparation lasts, and not the machine. */

#include "tests/unit/run.h"
#include "worker/prepare/prepare.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files/rundir.h"
#include "model/convert/synth.h"

#define WAIT_MS 20000
#define LONG    (400 * 1000)
#define ENDLESS ((size_t)16 << 20) /* bytes: seconds by the preparer's reckoning */

struct fixture {
    char folder[RUNDIR_PATH_MAX + 1];
    struct model *model;
    struct prompt_encoder encoder;
    struct preparer *preparer;
    char *long_text;
    int order[64]; /* arg of what was delivered */
    int n;
};

static const struct prompt *_Atomic held; /* its preparation lasts until this changes */

bool __real_prompt_encode(const struct prompt_encoder *encoder, const struct prompt *prompt,
                          struct bytes tools, struct ids *ret_ids, struct refusal *ret_refusal);
bool __wrap_prompt_encode(const struct prompt_encoder *encoder, const struct prompt *prompt,
                          struct bytes tools, struct ids *ret_ids, struct refusal *ret_refusal);

bool __wrap_prompt_encode(const struct prompt_encoder *encoder, const struct prompt *prompt,
                          struct bytes tools, struct ids *ret_ids, struct refusal *ret_refusal)
{
    while (atomic_load(&held) == prompt)
        usleep(1000);
    struct prompt first_words = *prompt;
    if (first_words.form == PROMPT_TEXT && first_words.text.len >= ENDLESS)
        first_words.text.len = 10;
    return __real_prompt_encode(encoder, &first_words, tools, ret_ids, ret_refusal);
}

static struct fixture *current; /* for `delivered`, which gets a number */

static struct fixture *fixture_new(void)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct error err = {0};
    char path[RUNDIR_PATH_MAX + 32];
    ck_assert_int_eq(rundir_temporary(f->folder, &err), 0);
    snprintf(path, sizeof path, "%s/model.gguf", f->folder);
    ck_assert_int_eq(synth_write(synth_shape_by_name("tiny"), mixture_by_name("F16"), 1, path, &err), 0);
    ck_assert_int_eq(model_open(path, true, &f->model, &err), 0);
    ck_assert_int_eq(prompt_encoder_init(&f->encoder, f->model, NULL), 0);
    ck_assert_int_eq(preparer_new(&f->encoder, false, &f->preparer, &err), 0);
    f->long_text = malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        f->long_text[i] = "many words, 123 "[i % 16];
    current = f;
    return f;
}

static void fixture_free(struct fixture *f)
{
    ck_assert(preparer_free(f->preparer, WAIT_MS));
    prompt_encoder_deinit(&f->encoder);
    model_free(f->model);
    rundir_remove(f->folder);
    free(f->long_text);
    free(f);
}

static void delivered(void *arg, struct preparation *preparation)
{
    (void)preparation;
    current->order[current->n++] = (int)(intptr_t)arg;
}

static struct prompt text_prompt(const char *text, size_t len)
{
    return (struct prompt){.form = PROMPT_TEXT, .text = {text, len}};
}

static void add(struct fixture *f, struct preparation *preparation, const struct prompt *prompt,
                int32_t priority, int number)
{
    *preparation = (struct preparation){
        .prompt = prompt, .priority = priority, .done = delivered, .arg = (void *)(intptr_t)number};
    ck_assert(preparer_add(f->preparer, preparation));
}

static void wait_until_busy(struct fixture *f)
{
    uint64_t until = clock_ns() + WAIT_MS * CLOCK_NS_PER_MS;
    while (preparer_busy_since(f->preparer) == 0)
        ck_assert_uint_lt(clock_ns(), until);
}

/* Adds one that is being prepared until let_go. */
static void add_held(struct fixture *f, struct preparation *preparation, const struct prompt *prompt,
                     int32_t priority, int number)
{
    atomic_store(&held, prompt);
    add(f, preparation, prompt, priority, number);
    wait_until_busy(f);
}

static void let_go(void)
{
    atomic_store(&held, NULL);
}

/* Delivers until n have come in all. */
static void deliver_until(struct fixture *f, int n)
{
    struct pollfd item = {preparer_fd(f->preparer), POLLIN, 0};
    while (f->n < n) {
        ck_assert_int_eq(poll(&item, 1, WAIT_MS), 1);
        preparer_deliver(f->preparer);
    }
    ck_assert_int_eq(f->n, n);
}

/* The descriptor says nothing when there is nothing: a loop that polls it would never rest. */
static bool is_quiet(struct fixture *f)
{
    struct pollfd item = {preparer_fd(f->preparer), POLLIN, 0};
    return poll(&item, 1, 0) == 0;
}

START_TEST(ids_are_those_of_the_encoder_and_reasons_too)
{
    struct fixture *f = fixture_new();
    static const char *const texts[] = {"Hello there", "", "\xff", "123 words"};
    struct preparation preparations[4];
    struct prompt prompts[4];
    for (int i = 0; i < 4; i++) {
        prompts[i] = text_prompt(texts[i], strlen(texts[i]));
        add(f, &preparations[i], &prompts[i], 0, i);
    }
    ck_assert_uint_eq(preparer_pending(f->preparer), 4);
    deliver_until(f, 4);
    ck_assert_uint_eq(preparer_pending(f->preparer), 0);
    ck_assert(is_quiet(f));
    int delivered_once[4] = {0}; /* in which order is a matter of when each was added */
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(delivered_once[f->order[i]]++, 0);
    for (int i = 0; i < 4; i++) {
        struct ids ids = {0};
        struct refusal refusal = {0};
        bool ok = prompt_encode(&f->encoder, &prompts[i], (struct bytes){0}, &ids, &refusal);
        ck_assert_int_eq(preparations[i].ok, ok);
        ck_assert_str_eq(preparations[i].refusal.reason.text, refusal.reason.text);
        ck_assert_int_eq(preparations[i].refusal.error, refusal.error);
        ck_assert_uint_eq(preparations[i].ids.len, ids.len);
        for (size_t k = 0; k < ids.len; k++)
            ck_assert_int_eq(preparations[i].ids.data[k], ids.data[k]);
        ids_deinit(&ids);
        ids_deinit(&preparations[i].ids);
    }
    ck_assert(!preparations[2].ok);
    ck_assert_int_eq(preparations[2].refusal.error, PROTO_BAD_REQUEST);
    fixture_free(f);
}
END_TEST

START_TEST(priority_comes_first_then_arrival_then_what_is_soon_done)
{
    struct fixture *f = fixture_new();
    struct preparation preparations[7];
    struct prompt brief = text_prompt("brief", 5), first = brief,
                  long_one = text_prompt(f->long_text, ENDLESS);
    add_held(f, &preparations[0], &first, 0, 0);
    add(f, &preparations[1], &brief, -1, 1);
    add(f, &preparations[2], &long_one, 0, 2);
    add(f, &preparations[3], &long_one, 0, 3);
    add(f, &preparations[4], &brief, 0, 4);
    add(f, &preparations[5], &brief, 0, 5);
    add(f, &preparations[6], &long_one, 1, 6);
    let_go();
    deliver_until(f, 7);
    static const int order[] = {0, 6, 4, 5, 2, 3, 1};
    for (int i = 0; i < 7; i++) {
        ck_assert_int_eq(f->order[i], order[i]);
        ids_deinit(&preparations[i].ids);
    }
    ck_assert_uint_eq(preparer_busy_since(f->preparer), 0);
    fixture_free(f);
}
END_TEST

START_TEST(what_is_brief_waits_for_no_text_that_was_begun)
{
    struct fixture *f = fixture_new();
    struct error err = {0};
    struct preparation preparations[4];
    struct prompt brief = text_prompt("brief", 5), long_one = text_prompt(f->long_text, LONG);
    ck_assert(preparer_free(f->preparer, WAIT_MS));
    ck_assert_int_eq(preparer_new(&f->encoder, true, &f->preparer, &err), 0);
    for (int i = 0; i < 3; i++)
        add(f, &preparations[i], &long_one, 1, i);
    wait_until_busy(f);
    add(f, &preparations[3], &brief, 0, 3); /* of a lower class, even */
    deliver_until(f, 4);
    int place = 0;
    while (f->order[place] != 3)
        place++;
    ck_assert_int_lt(place, 3); /* nor for those that had not begun */
    for (int i = 0; i < 4; i++)
        ids_deinit(&preparations[i].ids);
    fixture_free(f);
}
END_TEST

START_TEST(a_low_priority_waits_half_a_minute_longer_and_not_for_ever)
{
    struct fixture *f = fixture_new();
    struct preparation preparations[5];
    struct prompt brief = text_prompt("brief", 5), first = brief;
    add_held(f, &preparations[0], &first, 9, 0);
    add(f, &preparations[1], &brief, -1, 1);
    add(f, &preparations[2], &brief, -1, 2);
    preparations[1].expected_ns -= 31 * CLOCK_NS_PER_S; /* it has waited so long */
    preparations[2].expected_ns -= 28 * CLOCK_NS_PER_S;
    add(f, &preparations[3], &brief, 0, 3);
    add(f, &preparations[4], &brief, 1, 4);
    let_go();
    deliver_until(f, 5);
    static const int order[] = {0, 4, 1, 3, 2};
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(f->order[i], order[i]);
        ids_deinit(&preparations[i].ids);
    }
    fixture_free(f);
}
END_TEST

START_TEST(what_is_taken_back_is_never_delivered)
{
    struct fixture *f = fixture_new();
    struct preparation preparations[4];
    struct prompt brief = text_prompt("brief", 5), first = brief;
    add_held(f, &preparations[0], &first, 0, 0);
    add(f, &preparations[1], &brief, 0, 1);
    add(f, &preparations[2], &brief, 0, 2);
    ck_assert(!preparer_remove(f->preparer, &preparations[0])); /* the thread has it */
    ck_assert(preparer_remove(f->preparer, &preparations[1]));  /* it waits */
    ck_assert_uint_eq(preparer_pending(f->preparer), 2);
    let_go();
    deliver_until(f, 2);
    ck_assert_int_eq(f->order[1], 2);
    add(f, &preparations[3], &brief, 0, 3);
    struct pollfd item = {preparer_fd(f->preparer), POLLIN, 0};
    ck_assert_int_eq(poll(&item, 1, WAIT_MS), 1);
    ck_assert(preparer_remove(f->preparer, &preparations[3])); /* it is done and not delivered */
    ck_assert(is_quiet(f));
    ck_assert_uint_eq(preparer_deliver(f->preparer), 0);
    ck_assert_uint_eq(preparer_pending(f->preparer), 0);
    ck_assert_int_eq(f->n, 2);
    ids_deinit(&preparations[0].ids);
    ids_deinit(&preparations[2].ids);
    ids_deinit(&preparations[3].ids);
    fixture_free(f);
}
END_TEST

START_TEST(the_queue_is_bounded_in_number_and_bytes)
{
    struct fixture *f = fixture_new();
    struct preparation *preparations = calloc(PREPARE_MOST + 1, sizeof *preparations);
    struct prompt brief = text_prompt("brief", 5), long_one = text_prompt(f->long_text, LONG),
                  first = long_one;
    add_held(f, &preparations[0], &first, 9, 0);
    size_t n = 1;
    for (; n <= PREPARE_MOST_BYTES / LONG; n++)
        add(f, &preparations[n], &long_one, 0, (int)n);
    preparations[n] = (struct preparation){.prompt = &long_one, .done = delivered};
    ck_assert(!preparer_add(f->preparer, &preparations[n]));
    for (; n < PREPARE_MOST; n++)
        add(f, &preparations[n], &brief, 0, (int)n);
    preparations[n] = (struct preparation){.prompt = &brief, .done = delivered};
    ck_assert(!preparer_add(f->preparer, &preparations[n]));
    for (size_t i = 1; i < PREPARE_MOST_BYTES / LONG; i++)
        if (preparer_remove(f->preparer, &preparations[i]))
            ids_deinit(&preparations[i].ids);
    ck_assert(preparer_add(f->preparer, &preparations[n])); /* room was given back */
    let_go();
    ck_assert(preparer_free(f->preparer, WAIT_MS)); /* with work left */
    f->preparer = NULL;
    for (size_t i = 0; i <= PREPARE_MOST; i++)
        ids_deinit(&preparations[i].ids);
    free(preparations);
    fixture_free(f);
}
END_TEST

/* A conversation has the bytes of all its messages, roles included. */
START_TEST(conversations_count_as_texts_do)
{
    struct fixture *f = fixture_new();
    char *content = calloc(1, PREPARE_MOST_BYTES / 2);
    const struct chat_message one = {.role = {"u", 1}, .content = {content, PREPARE_MOST_BYTES / 2 - 1}},
                              two[2] = {one, one}, over[3] = {one, one, {.role = {"u", 1}}};
    struct prompt brief = text_prompt("brief", 5), whole = {.form = PROMPT_CHAT, .chat = {two, 2}},
                  more = {.form = PROMPT_CHAT, .chat = {over, 3}};
    struct preparation preparations[3] = {{.prompt = &more, .done = delivered}};
    add_held(f, &preparations[1], &brief, 9, 0);
    ck_assert(!preparer_add(f->preparer, &preparations[0]));
    add(f, &preparations[2], &whole, 0, 1);
    preparations[0].prompt = &brief;
    ck_assert(!preparer_add(f->preparer, &preparations[0])); /* not one byte is left */
    ck_assert(preparer_remove(f->preparer, &preparations[2]));
    ck_assert(preparer_add(f->preparer, &preparations[0]));
    let_go();
    deliver_until(f, 2);
    ids_deinit(&preparations[0].ids);
    ids_deinit(&preparations[1].ids);
    free(content);
    fixture_free(f);
}
END_TEST

/* Where 64 bytes are left: ids, calls of tools, tools and grammars count as texts do. */
START_TEST(all_that_waits_is_counted_in_bytes)
{
    static const int32_t ids[17];
    static const char bytes[64];
    struct fixture *f = fixture_new();
    char *content = calloc(1, PREPARE_MOST_BYTES);
    struct prompt brief = text_prompt("brief", 5), others = text_prompt(content, PREPARE_MOST_BYTES - 64);
    struct preparation first, second;
    add_held(f, &first, &brief, 9, 0);
    add(f, &second, &others, 0, 1);
    for (size_t more = 0; more <= 1; more++) {
        const struct chat_message message = {
            .role = {bytes, 4}, .content = {bytes, 40}, .tool_calls = {bytes, 20 + more}};
        const struct grammar_text grammar = {.text = {bytes, 54 + more}};
        const struct prompt of_ids = {.form = PROMPT_IDS, .ids = {ids, 16 + more}},
                            chat = {.form = PROMPT_CHAT, .chat = {&message, 1}}, ten = text_prompt(bytes, 10);
        struct preparation all[] = {{.prompt = &of_ids},
                                    {.prompt = &chat},
                                    {.prompt = &ten, .tools = {bytes, 54 + more}},
                                    {.prompt = &ten, .grammar = &grammar}};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
            ck_assert_msg(preparer_add(f->preparer, &all[i]) == (more == 0), "%zu, %zu", i, more);
            ck_assert(more || preparer_remove(f->preparer, &all[i]));
        }
    }
    ck_assert(preparer_remove(f->preparer, &second));
    let_go();
    deliver_until(f, 1);
    ids_deinit(&first.ids);
    free(content);
    fixture_free(f);
}
END_TEST

START_TEST(a_preparer_that_does_not_end_in_time_is_left_alone)
{
    struct fixture *f = fixture_new();
    struct preparation preparation;
    struct prompt prompt = text_prompt("brief", 5);
    add_held(f, &preparation, &prompt, 0, 0);
    ck_assert(!preparer_free(f->preparer, 0));
    let_go();
    ck_assert(preparer_free(f->preparer, WAIT_MS)); /* it was whole all the time */
    f->preparer = NULL;
    ids_deinit(&preparation.ids);
    fixture_free(f);
}
END_TEST

START_TEST(a_bound_in_tokens_refuses_a_text_before_it_is_split)
{
    struct fixture *f = fixture_new();
    struct prompt long_one = text_prompt(f->long_text, LONG);
    struct ids ids = {0};
    struct refusal refusal = {0};
    prompt_encoder_bound(&f->encoder, 100);
    ck_assert_uint_eq(f->encoder.most_bytes, 100 * f->encoder.longest_token);
    ck_assert_uint_gt(f->encoder.longest_token, 1);
    ck_assert(!prompt_encode(&f->encoder, &long_one, (struct bytes){0}, &ids, &refusal));
    ck_assert_int_eq(refusal.error, PROTO_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(refusal.reason.text, "390.6 KiB"));
    ck_assert_uint_eq(ids.len, 0);
    ck_assert(prompt_encode_text(&f->encoder, (struct bytes){f->long_text, 100000}, false, &ids, &refusal));
    ck_assert_uint_gt(ids.len, 10000);
    ids_deinit(&ids);
    fixture_free(f);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, ids_are_those_of_the_encoder_and_reasons_too);
    tcase_add_test(tests, priority_comes_first_then_arrival_then_what_is_soon_done);
    tcase_add_test(tests, what_is_brief_waits_for_no_text_that_was_begun);
    tcase_add_test(tests, a_low_priority_waits_half_a_minute_longer_and_not_for_ever);
    tcase_add_test(tests, what_is_taken_back_is_never_delivered);
    tcase_add_test(tests, the_queue_is_bounded_in_number_and_bytes);
    tcase_add_test(tests, conversations_count_as_texts_do);
    tcase_add_test(tests, all_that_waits_is_counted_in_bytes);
    tcase_add_test(tests, a_preparer_that_does_not_end_in_time_is_left_alone);
    tcase_add_test(tests, a_bound_in_tokens_refuses_a_text_before_it_is_split);
}

int main(void)
{
    return run_tests("prepare", add_tests);
}
