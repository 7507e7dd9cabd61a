/* SPDX-License-Identifier: MIT */
/* Getting memory by parts, which threads take in turn.
 *
 * Weights are read at every token, so they want huge pages. The kernel makes one around a page that is there,
 * on its node, and then clears the rest in one go; were all small pages there, it would have to copy them.
 * Where it makes none (before Linux 6.1, or when it finds no whole piece of memory) small ones do. */

#include "engine/backend/weight_pages.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "common/system/shm.h"

#define HUGE_PAGE WEIGHT_HUGE_PAGE
#define PART      (16 * HUGE_PAGE) /* whose memory one thread gets at once */
#define ROUND     (16 * PART)      /* that all threads get before they tell of it */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* What several threads get at once. */
struct commitment {
    const struct weight_pages *pages;
    atomic_size_t next; /* the first byte that nobody has taken */
    size_t end;         /* of this round */
    atomic_int result;
};

/* ---- nodes of memory ---- */

/* The n-th of the set, from 0 on and in turn. */
static uint32_t nth_node(uint64_t nodes, size_t n)
{
    for (n %= (size_t)__builtin_popcountll(nodes); n > 0; n--)
        nodes &= nodes - 1;
    return (uint32_t)__builtin_ctzll(nodes);
}

/* A huge page lies where its first small page does. The kernel's own interleaving counts small pages: with
 * two nodes it would put every huge page on the same one. */
void weight_pages_prefer(const struct weight_store_place *place, size_t at)
{
    if (place->nodes)
        place->prefer(place->arg, nth_node(place->nodes, at / HUGE_PAGE));
}

void weight_pages_prefer_any(const struct weight_store_place *place)
{
    if (place->nodes)
        place->prefer(place->arg, WEIGHT_STORE_ANY_NODE);
}

/* ---- getting it ---- */

/* Asks for huge pages where there is a small one already. Linux 6.1 makes the first and says -EINVAL; so each
 * is asked for then, in calls that cost little beside the clearing of a page. */
static void collapse(uint8_t *start, size_t size)
{
    if (size == 0 || madvise(start, size, MADV_COLLAPSE) == 0)
        return;
    for (size_t i = 0; i < size; i += HUGE_PAGE)
        madvise(start + i, HUGE_PAGE, MADV_COLLAPSE);
}

static int commit_part(const struct weight_pages *pages, size_t at)
{
    const size_t n = pages->bytes - at < PART ? pages->bytes - at : PART, whole = n / HUGE_PAGE * HUGE_PAGE;
    int r = 0;
    for (size_t i = 0; i < whole && r == 0; i += HUGE_PAGE) {
        weight_pages_prefer(pages->place, at + i);
        r = shm_commit(pages->fd, at + i, 1);
    }
    if (r < 0)
        return r;
    collapse(pages->mapping + at, whole);
    for (size_t i = 0; i < n && r == 0; i += HUGE_PAGE) {
        weight_pages_prefer(pages->place, at + i);
        r = shm_commit(pages->fd, at + i, n - i < HUGE_PAGE ? n - i : HUGE_PAGE);
    }
    return r;
}

static void commit_parts(void *arg)
{
    struct commitment *commitment = arg;
    size_t at;
    while (atomic_load(&commitment->result) == 0 &&
           (at = atomic_fetch_add(&commitment->next, PART)) < commitment->end) {
        const int r = commit_part(commitment->pages, at);
        if (r < 0)
            atomic_store(&commitment->result, r);
    }
    weight_pages_prefer_any(commitment->pages->place);
}

int weight_pages_commit(const struct weight_pages *pages, weight_store_run *run, void *team,
                        void (*after_round)(void *arg), void *arg)
{
    struct commitment commitment = {.pages = pages};
    while (atomic_load(&commitment.result) == 0 && commitment.end < pages->bytes) {
        atomic_store(&commitment.next, commitment.end);
        commitment.end = pages->bytes - commitment.end < ROUND ? pages->bytes : commitment.end + ROUND;
        if (run)
            run(team, commit_parts, &commitment);
        else
            commit_parts(&commitment);
        after_round(arg);
    }
    return atomic_load(&commitment.result);
}
