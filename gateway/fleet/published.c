/* SPDX-License-Identifier: MIT */
/* See published.h. The pool's broker keeps nothing for us: each question says up to where we know its
 * changes, so an answer that is lost is asked for again, and an older one cannot come, since there is one
 * question at a time. */

#include "gateway/fleet/published.h"

#include "common/clock.h"

#define EVERY_NS  (1 * CLOCK_NS_PER_S)
#define LATER_NS  (30 * CLOCK_NS_PER_S) /* after a refusal */
#define MINUTE_NS (60 * CLOCK_NS_PER_S)

bool published_is_due(const struct published *published, const struct pool *pool, uint64_t now)
{
    const bool waits = published->asked && published->client == pool->n_clients;
    return pool->client && quern_is_open(pool->client) && !waits && now >= published->due_ns;
}

struct quern_prefixes_wish published_wish(const struct published *published, const char *secret)
{
    return (struct quern_prefixes_wish){
        .boot = published->boot, .next = published->next, .at = published->at, .secret = secret};
}

void published_asked(struct published *published, const struct pool *pool, bool sent, uint64_t now)
{
    published->asked = sent;
    published->client = pool->n_clients;
    published->due_ns = now + EVERY_NS;
}

static bool begins(const struct published *published, const struct quern_prefixes *told)
{
    return told->begins || told->boot != published->boot;
}

static bool is_over(const struct published *published, uint64_t now)
{
    return published->minute_ns == 0 || now - published->minute_ns >= MINUTE_NS;
}

enum published_news published_look(const struct published *published, const struct quern_prefixes *told,
                                   uint64_t now)
{
    if (!begins(published, told))
        return PUBLISHED_NOTHING;
    const bool many = !is_over(published, now) && published->begun >= PUBLISHED_BEGINNINGS;
    return many ? PUBLISHED_TOO_SOON : PUBLISHED_BEGINS;
}

static void count(struct published *published, const struct quern_prefixes *told, uint64_t now)
{
    const size_t most = told->n_added > told->n_dropped ? told->n_added : told->n_dropped;
    if (is_over(published, now)) {
        published->minute_ns = now;
        published->told = published->begun = 0;
    }
    published->told += most > PUBLISHED_LEAST ? (uint32_t)most : PUBLISHED_LEAST;
    published->begun += begins(published, told);
}

/* Whether the pool is worth another question at once: more has come together, and this answer has led on. */
static bool leads_on(const struct published *published, const struct quern_prefixes *told)
{
    const uint32_t at = begins(published, told) ? 0 : published->at;
    if (told->at != 0)
        return told->at > at;
    return told->next > published->next && told->n_added + told->n_dropped >= PUBLISHED_PART;
}

bool published_take(struct published *published, const struct quern_prefixes *told, struct book *book,
                    uint32_t number, uint64_t now)
{
    count(published, told, now);
    if (leads_on(published, told))
        published->due_ns = now;
    book_note(book, told->added, told->n_added, number);
    book_strike(book, told->dropped, told->n_dropped, number);
    published->boot = told->boot;
    published->next = told->next;
    published->at = told->at;
    published->pieces = told->pieces;
    published->asked = published->failed = false;
    published->answers++;
    return published->told >= PUBLISHED_MOST && published_wait(published);
}

bool published_wait(struct published *published)
{
    const bool is_news = !published->exceeded;
    published->asked = false;
    published->exceeded = true;
    published->due_ns = published->minute_ns + MINUTE_NS;
    return is_news;
}

void published_miss(struct published *published, uint64_t now)
{
    published->asked = false;
    published->due_ns = now + EVERY_NS;
}

bool published_fail(struct published *published, uint64_t now)
{
    const bool is_news = !published->failed;
    published->boot = published->next = 0;
    published->at = published->pieces = 0;
    published->asked = false;
    published->failed = true;
    published->due_ns = now + LATER_NS;
    return is_news;
}
