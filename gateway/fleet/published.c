/* SPDX-License-Identifier: MIT */
/* See published.h. The pool's broker keeps nothing for us: each question says up to where we know its
 * changes, so an answer that is lost is asked for again, and an older one cannot come, since there is one
 * question at a time. */

#include "gateway/fleet/published.h"

#include "common/clock.h"

#define EVERY_NS (1 * CLOCK_NS_PER_S)
#define LATER_NS (30 * CLOCK_NS_PER_S) /* after a refusal */

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

enum published_news published_look(const struct published *published, const struct quern_prefixes *told)
{
    const size_t n = begins(published, told) ? 0 : published->n;
    if (n + told->n_added > PUBLISHED_MOST)
        return PUBLISHED_OVERFLOWS;
    return begins(published, told) ? PUBLISHED_BEGINS : PUBLISHED_NOTHING;
}

void published_take(struct published *published, const struct quern_prefixes *told, struct book *book,
                    uint32_t number, uint64_t now)
{
    if (begins(published, told))
        published->n = 0;
    published->n += book_note(book, told->added, told->n_added, number);
    const size_t gone = book_strike(book, told->dropped, told->n_dropped, number);
    published->n -= gone < published->n ? gone : published->n;
    published->boot = told->boot;
    published->next = told->next;
    published->at = told->at;
    published->pieces = told->pieces;
    published->asked = published->failed = false;
    published->answers++;
    if (told->at != 0 || told->n_added + told->n_dropped >= PUBLISHED_PART)
        published->due_ns = now; /* more has come together */
}

bool published_fail(struct published *published, uint64_t now)
{
    const bool is_news = !published->failed;
    *published = (struct published){
        .failed = true, .client = published->client, .due_ns = now + LATER_NS, .answers = published->answers};
    return is_news;
}
