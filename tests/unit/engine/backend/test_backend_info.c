/* SPDX-License-Identifier: MIT */
/* What a backend says of itself when it is opened: too little is refused, and the slots that nobody asked for
 * are the device's to choose. */

#include "tests/unit/run.h"
#include "tests/unit/engine/fake.h"
#include "engine/engine.h"

#include <errno.h>

/* The fake backend, which says something else of itself. */
static struct backend_info (*said_of_itself)(struct backend_info info);

static void say_something_else(const struct backend *backend, struct backend_info *ret_info)
{
    backend_fake.info(backend, ret_info);
    *ret_info = said_of_itself(*ret_info);
}

static struct backend_info no_group(struct backend_info info)
{
    info.n_groups = 0;
    return info;
}

static struct backend_info too_many_groups(struct backend_info info)
{
    info.n_groups = BACKEND_MOST_GROUPS + 1;
    return info;
}

static struct backend_info few_rows(struct backend_info info)
{
    info.max_rows = 3;
    return info;
}

static struct backend_info no_blocks(struct backend_info info)
{
    info.groups[0].n_blocks = 0;
    return info;
}

static struct backend_info few_slots(struct backend_info info)
{
    info.n_slots--;
    return info;
}

static struct backend_info more_slots(struct backend_info info)
{
    info.n_slots++;
    return info;
}

static struct backend_info just_enough(struct backend_info info)
{
    info.max_rows = 4;
    return info;
}

START_TEST(a_backend_that_has_too_little_is_refused)
{
    struct backend_ops ops = backend_fake;
    const struct engine_config config = {.model = &fake_model,
                                         .backend = &ops,
                                         .backend_config = {.n_slots = 4, .n_blocks = 9, .max_rows = 16}};
    static const struct {
        struct backend_info (*says)(struct backend_info info);
        const char *text;
    } cases[] = {{no_group, "fake: number of KV groups 0 is out of range 1..4"},
                 {too_many_groups, "fake: number of KV groups 5 is out of range 1..4"},
                 {few_rows, "fake: 3 rows per step and 9 KV blocks are too few for 4 slots"},
                 {no_blocks, "fake: 16 rows per step and 0 KV blocks are too few for 4 slots"},
                 {few_slots, "fake: 3 slots instead of 4"},
                 {more_slots, "fake: 5 slots instead of 4"},
                 {just_enough, NULL}};
    fake_script = (struct fake_script){0};
    ops.info = say_something_else;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine *engine = NULL;
        struct error err = {0};
        said_of_itself = cases[i].says;
        const int r = engine_new(&config, NULL, NULL, &engine, &err);
        ck_assert_int_eq(r, cases[i].text ? -EINVAL : 0);
        if (cases[i].text)
            ck_assert_str_eq(err.text, cases[i].text);
        engine_free(engine);
    }
}
END_TEST

static struct backend_config asked;

static int remember_what_is_asked(const struct backend_config *config, struct backend **ret_backend,
                                  struct error *err)
{
    asked = *config;
    return backend_fake.open(config, ret_backend, err);
}

static struct backend_info most_that_may_be(struct backend_info info)
{
    info.n_slots = asked.most_slots;
    return info;
}

START_TEST(slots_that_nobody_asked_for_are_the_devices_to_say_between_two_bounds)
{
    struct backend_ops ops = backend_fake;
    struct engine_config config = {.model = &fake_model, .backend = &ops, .backend_config = {.n_blocks = 9}};
    struct engine *engine;
    struct engine_stats stats;
    fake_script = (struct fake_script){0};
    ops.open = remember_what_is_asked;
    ck_assert_int_eq(engine_new(&config, NULL, NULL, &engine, NULL), 0);
    ck_assert(asked.n_slots == 32 && asked.most_slots == 256);
    engine_stats(engine, &stats);
    ck_assert_uint_eq(stats.slots, 32);
    engine_free(engine);
    said_of_itself = most_that_may_be;
    ops.info = say_something_else;
    ck_assert_int_eq(engine_new(&config, NULL, NULL, &engine, NULL), 0);
    engine_stats(engine, &stats);
    ck_assert_uint_eq(stats.slots, 256);
    engine_free(engine);
    config.backend_config.n_slots = 5;
    ops.info = backend_fake.info;
    ck_assert_int_eq(engine_new(&config, NULL, NULL, &engine, NULL), 0);
    ck_assert(asked.n_slots == 5 && asked.most_slots == 0);
    engine_free(engine);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_backend_that_has_too_little_is_refused);
    tcase_add_test(tests, slots_that_nobody_asked_for_are_the_devices_to_say_between_two_bounds);
}

int main(void)
{
    return run_tests("backend info", add);
}
