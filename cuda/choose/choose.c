/* SPDX-License-Identifier: MIT */
/* Taking a table, or measuring one under the lock of its place. What was found in the place is looked at
 * twice: before the lock, which most starts never need, and behind it, for another worker may have measured
 * meanwhile.
 */

#include "cuda/choose/choose.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "engine/backend/choices/kept.h"

/* Longer than anybody measures, or waits for a device that hangs; then the table is this worker's own. */
#define WAIT_MS 60000

static void say(const struct choosing *choosing, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static void say(const struct choosing *choosing, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!choosing->config->say)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    choosing->config->say(choosing->config->say_arg, line);
}

static void describe(const struct choosing *choosing, struct choices *choices)
{
    const struct device_properties *properties = device_properties(choosing->device);
    const struct model_params *params = &choosing->pass->model->params;
    choices->key = (struct choices_key){.build = choose_build,
                                        .launches = choices_digest_launches(choices),
                                        .n_multiprocessors = properties->n_multiprocessors,
                                        .library = choosing->library,
                                        .max_rows = choosing->max_rows};
    snprintf(choices->key.device, sizeof choices->key.device, "%s", properties->name);
    snprintf(choices->key.driver, sizeof choices->key.driver, "%s", properties->driver);
    snprintf(choices->model, sizeof choices->model, "%.20s, %u layer%s of %u", params->architecture,
             params->n_layers, params->n_layers == 1 ? "" : "s", params->n_embd);
}

/* The key has a digest of them; a file that somebody made up may have other ones. */
static bool has_launches(const struct choices *table, const struct choices *wanted)
{
    if (table->n_launches != wanted->n_launches)
        return false;
    for (uint32_t i = 0; i < wanted->n_launches; i++)
        if (table->launches[i].n != wanted->launches[i].n ||
            memcmp(table->launches[i].matrices, wanted->launches[i].matrices,
                   sizeof wanted->launches[i].matrices) != 0)
            return false;
    return true;
}

/* The table that is kept for these launches, in their place. 0; another code, with `why`: there is none. */
static int take(struct choices *choices, struct error *why)
{
    struct choices *found = malloc(sizeof *found);
    if (!found)
        return error_set(why, -ENOMEM, "out of memory");
    int r = kept_find(&choices->key, found, why);
    if (r == 0 && !has_launches(found, choices))
        r = error_set(why, -ESTALE, "the launches in the table do not match its key");
    if (r == 0)
        *choices = *found;
    free(found);
    return r;
}

static int measure_and_keep(const struct choosing *choosing, struct measure *measure)
{
    struct choices *choices = measure->choices;
    struct error err;
    int r = measure_run(measure, CHOOSE_BUDGET_NS);
    choices->when = (uint64_t)time(NULL);
    if (r == 0 && kept_write(choices, &err) < 0)
        say(choosing, "choices of products cannot be stored: %s", err.text);
    return r;
}

static int take_or_measure(const struct choosing *choosing, struct measure *measure, bool *ret_measured)
{
    const struct backend_config *config = choosing->config;
    struct error why;
    int r = take(measure->choices, &why);
    if (r == 0)
        return 0;
    if (r != -ENOENT)
        say(choosing, "measuring choices of products again: %s", why.text);
    const int lock = kept_lock(&measure->choices->key, WAIT_MS, config->progress, config->progress_arg);
    if (lock == -ETIMEDOUT)
        say(choosing, "measuring choices of products here: another process has been measuring for %d s",
            WAIT_MS / 1000);
    r = lock >= 0 ? take(measure->choices, &why) : -ENOENT;
    if (r < 0) {
        r = measure_and_keep(choosing, measure);
        *ret_measured = true;
    }
    kept_unlock(lock);
    return r;
}

int choose_ways(const struct choosing *choosing, struct choices *ret_choices, bool *ret_measured)
{
    struct measure measure;
    char summary[CHOICES_SUMMARY];
    *ret_choices = (struct choices){0};
    *ret_measured = false;
    if (!device_properties(choosing->device)->has_clock)
        return 0;
    int r = measure_init(&measure, choosing->pass, choosing->device, choosing->weights, choosing->max_rows,
                         ret_choices);
    describe(choosing, ret_choices);
    measure.config = choosing->config;
    if (r == 0)
        r = take_or_measure(choosing, &measure, ret_measured);
    measure_deinit(&measure);
    if (r == -ENOTSUP)
        say(choosing, "choices of products are not measured: the driver does not record (%s)",
            device_refusal(device_stream(choosing->device)));
    if (r < 0) {
        ret_choices->n_launches = 0;
        return r == -ENOTSUP ? 0 : r;
    }
    choices_summarize(ret_choices, summary);
    say(choosing, "%s%s", summary, *ret_measured ? "" : ", by another worker or an earlier start");
    return 0;
}
