/* SPDX-License-Identifier: MIT */
/* See books.h. */

#include "gateway/fleet/books.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

#define ANSWER_MS 5000                  /* most that one is waited for */
#define TOLD_NS   (90 * CLOCK_NS_PER_S) /* that what a pool has told of its space counts */

/* How many pools have told that space lately. Those that have it not are asked rarely. */
static size_t count_space(const struct fleet *fleet, const char *space, uint64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < fleet->n_pools; i++) {
        const struct fleet_pool *pool = fleet->pools[i];
        n += !pool->leaving && pool->space_ns != 0 && now - pool->space_ns < TOLD_NS &&
             strcmp(pool->space, space) == 0;
    }
    return n;
}

/* Those that were refused for the space before are asked at once. */
static void change_space(struct fleet *fleet, const char *space, uint64_t now)
{
    if (fleet->has_space)
        log_info("fleet: most pools now separate cached prompts differently; the gateway follows them");
    snprintf(fleet->space, sizeof fleet->space, "%s", space);
    fleet->has_space = true;
    for (size_t i = 0; i < fleet->n_pools; i++)
        if (fleet->pools[i]->published.failed && strcmp(fleet->pools[i]->space, space) == 0)
            fleet->pools[i]->published.due_ns = now;
}

bool books_take_space(struct fleet_pool *pool, const char *space, uint64_t now)
{
    struct fleet *fleet = pool->fleet;
    snprintf(pool->space, sizeof pool->space, "%s", space);
    pool->space_ns = now;
    if (fleet->has_space && strcmp(fleet->space, space) == 0)
        return true;
    if (fleet->has_space && count_space(fleet, space, now) <= count_space(fleet, fleet->space, now))
        return false;
    change_space(fleet, space, now);
    return true;
}

static void say_failure(struct fleet_pool *pool, const char *reason)
{
    if (published_fail(&pool->published, clock_ns()))
        log_warn("fleet: %s does not report its cached prompts: %s", pool->member.name, reason);
}

static void say_excess(const struct fleet_pool *pool)
{
    log_warn(
        "fleet: %s reports too many cached prompts in a minute: the rest will be requested within the next "
        "minute",
        pool->member.name);
}

static void take(struct fleet_pool *pool, const struct quern_prefixes *told, uint64_t now)
{
    switch (published_look(&pool->published, told, now)) {
    case PUBLISHED_TOO_SOON:
        if (published_wait(&pool->published))
            say_excess(pool);
        return;
    case PUBLISHED_BEGINS:
        fleet_forget_book(pool);
        break;
    case PUBLISHED_NOTHING:
        break;
    }
    if (published_take(&pool->published, told, &pool->fleet->book, pool->in_book, now))
        say_excess(pool);
}

static void on_prefixes(void *arg, const struct quern_answer *answer)
{
    struct fleet_pool *pool = arg;
    const uint64_t now = clock_ns();
    if (answer->code == -EREMOTEIO)
        say_failure(pool, answer->text);
    else if (answer->code != 0)
        published_miss(&pool->published, now);
    else if (books_take_space(pool, answer->prefixes->space, now))
        take(pool, answer->prefixes, now);
    else
        say_failure(
            pool,
            "it separates cached prompts differently from the other pools (client key, --share-prefixes)");
}

void books_turn(struct fleet *fleet, uint64_t now)
{
    for (size_t i = 0; fleet->secret.text[0] && i < fleet->n_pools; i++) {
        struct fleet_pool *pool = fleet->pools[i];
        if (!published_is_due(&pool->published, &pool->pool, now))
            continue;
        const struct quern_prefixes_wish wish = published_wish(&pool->published, fleet->secret.text);
        const bool sent =
            quern_ask_prefixes(pool->pool.client, &wish, ANSWER_MS, on_prefixes, pool, NULL) == 0;
        published_asked(&pool->published, &pool->pool, sent, now);
    }
}
