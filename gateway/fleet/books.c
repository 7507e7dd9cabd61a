/* SPDX-License-Identifier: MIT */
/* See books.h. */

#include "gateway/fleet/books.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

#define ANSWER_MS 5000 /* most that one is waited for */

/* Prompts are hashed in one space. A pool with another one has nothing that could be found. */
static bool is_our_space(struct fleet *fleet, const char *space)
{
    if (!fleet->has_space) {
        snprintf(fleet->space, sizeof fleet->space, "%s", space);
        fleet->has_space = true;
    }
    return strcmp(fleet->space, space) == 0;
}

static void say_failure(struct fleet_pool *pool, const char *reason)
{
    if (published_fail(&pool->published, clock_ns()))
        log_warn("fleet: %s does not tell what prompts it has: %s", pool->member.name, reason);
}

static void on_prefixes(void *arg, const struct quern_answer *answer)
{
    struct fleet_pool *pool = arg;
    struct fleet *fleet = pool->fleet;
    const struct quern_prefixes *told = answer->prefixes;
    if (answer->code != 0) {
        say_failure(pool, answer->text);
        return;
    }
    if (!is_our_space(fleet, told->space)) {
        say_failure(pool,
                    "it separates prompts otherwise than the other pools (client key, --share-prefixes)");
        return;
    }
    switch (published_look(&pool->published, told)) {
    case PUBLISHED_OVERFLOWS:
        fleet_forget_book(pool);
        say_failure(pool, "it says that it has more than a pool can have");
        return;
    case PUBLISHED_BEGINS:
        fleet_forget_book(pool);
        break;
    case PUBLISHED_NOTHING:
        break;
    }
    published_take(&pool->published, told, &fleet->book, pool->in_book, clock_ns());
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
