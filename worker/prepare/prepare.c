/* SPDX-License-Identifier: MIT */
/* Two lists under one lock: what waits, and what is done; in between a preparation is in neither, but with
 * the thread of a lane. One lane takes what is first; the other only what is brief, so that it never waits
 * for the text of megabytes that the first has begun.
 *
 * `waiting` is ordered when something is added: by the time at which its preparation could have ended had it
 * begun on arrival, each priority class being half a minute of it. So a text of 4 MB, for which a second is
 * reckoned, gives way to what arrives within that second and to nothing later.
 *
 * The thread holds the lock only to move between lists: a preparation that it took is in none that the owner
 * can reach, and its outcome is the owner's only once it is in `done`. An eventfd tells the owner's
 * poll whether something is done. */

#include "worker/prepare/prepare.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"

#include <utlist.h>

#define NS_PER_BYTE 250                            /* reckoned for a text: 4 MB a second */
#define BRIEF_BYTES 16384                          /* some milliseconds */
#define CLASS_NS    (30 * (int64_t)CLOCK_NS_PER_S) /* a priority class is worth so much waiting */

struct lane {
    struct preparer *owner;
    pthread_t thread;
    size_t most_bytes; /* of what it takes */
    uint64_t busy_since_ns;
    bool ended;
};

struct preparer {
    const struct prompt_encoder *encoder;
    struct grammars *grammars;
    struct lane lanes[2]; /* [n_lanes] */
    uint32_t n_lanes;
    int event_fd;
    uint32_t pending; /* the owner's count; the thread does not look at it */

    pthread_mutex_t lock;   /* of all below */
    pthread_cond_t changed; /* something waits, the owner wants the end, the thread has ended */
    struct preparation *waiting, *done;
    size_t waiting_bytes;
    bool told; /* the eventfd is readable */
    bool ending;
};

/* Makes the descriptor readable exactly while `done` holds something. Under the lock. */
static void tell_owner(struct preparer *preparer)
{
    uint64_t count = 1;
    bool wanted = preparer->done != NULL;
    if (wanted == preparer->told)
        return;
    ssize_t n = wanted ? write(preparer->event_fd, &count, sizeof count)
                       : read(preparer->event_fd, &count, sizeof count);
    preparer->told = n < 0 ? preparer->told : wanted;
}

static bool prepare_grammar(struct preparer *preparer, struct preparation *preparation)
{
    struct error err = {0};
    int r = grammars_get(preparer->grammars, preparation->grammar, &preparation->made, &err);
    if (r == 0)
        return true;
    return r > 0 ? refuse(&preparation->refusal, PROTO_BAD_REQUEST, "%s", err.text)
                 : refuse(&preparation->refusal, PROTO_INTERNAL, "the worker is out of memory");
}

static bool prepare_thinking(const struct prompt_encoder *encoder, struct preparation *preparation)
{
    const struct prompt *prompt = preparation->prompt;
    const struct dialect_thoughts *thoughts = &encoder->dialect.thoughts;
    const struct ids_view ids = prompt->form == PROMPT_IDS
                                    ? (struct ids_view){prompt->ids.items, prompt->ids.n}
                                    : (struct ids_view){preparation->ids.data, preparation->ids.len};
    if (!thinking_check(&encoder->thought_ends, thoughts, prompt->thinking_budget, &preparation->refusal))
        return false;
    if (thinking_is_inside(encoder->tokenizer, thoughts, prompt, ids, &preparation->inside) < 0)
        return refuse(&preparation->refusal, PROTO_INTERNAL, "the worker is out of memory");
    return true;
}

static void prepare(struct preparer *preparer, struct preparation *preparation)
{
    const struct prompt_encoder *encoder = preparer->encoder;
    const struct prompt *prompt = preparation->prompt;
    preparation->ok = true;
    if (preparation->question && prompt->form == PROMPT_IDS)
        preparation->ok =
            prompt_decode(encoder, prompt->ids, prompt->special, &preparation->text, &preparation->refusal);
    else if (preparation->question && prompt->form == PROMPT_CHAT)
        preparation->ok =
            prompt_encode_chat(encoder, prompt, preparation->tools, &preparation->ids,
                               preparation->written ? &preparation->text : NULL, &preparation->refusal);
    else if (preparation->question)
        preparation->ok = prompt_encode_text(encoder, prompt->text,
                                             (prompt->special ? TOKENIZER_PARSE_SPECIAL : 0) |
                                                 (preparation->bare ? 0 : TOKENIZER_ADD_SPECIAL),
                                             &preparation->ids, &preparation->refusal);
    else if (prompt->form != PROMPT_IDS)
        preparation->ok =
            prompt_encode(encoder, prompt, preparation->tools, &preparation->ids, &preparation->refusal);
    if (preparation->ok && !preparation->question && prompt->has_thinking_budget)
        preparation->ok = prepare_thinking(encoder, preparation);
    if (preparation->ok && preparation->grammar)
        preparation->ok = prepare_grammar(preparer, preparation);
    if (preparation->ok && preparation->wording)
        preparation->ok = words_find(encoder->tokenizer, preparation->wording, preparation->dry,
                                     &preparation->words, &preparation->refusal);
}

/* The first that waits for this lane, or NULL. Under the lock. */
static struct preparation *first_for(const struct lane *lane)
{
    struct preparation *preparation = lane->owner->waiting;
    while (preparation && preparation->bytes > lane->most_bytes)
        preparation = preparation->next;
    return preparation;
}

static void *thread_main(void *arg)
{
    struct lane *lane = arg;
    struct preparer *preparer = lane->owner;
    pthread_mutex_lock(&preparer->lock);
    while (!preparer->ending) {
        struct preparation *current = first_for(lane);
        if (!current) {
            pthread_cond_wait(&preparer->changed, &preparer->lock);
            continue;
        }
        DL_DELETE(preparer->waiting, current);
        preparer->waiting_bytes -= current->bytes;
        lane->busy_since_ns = clock_ns();
        pthread_mutex_unlock(&preparer->lock);
        prepare(preparer, current);
        pthread_mutex_lock(&preparer->lock);
        lane->busy_since_ns = 0;
        DL_APPEND(preparer->done, current);
        tell_owner(preparer);
    }
    lane->ended = true;
    pthread_cond_broadcast(&preparer->changed);
    pthread_mutex_unlock(&preparer->lock);
    return NULL;
}

/* Signals are the loop's: the thread takes none. */
static int start_lane(struct preparer *preparer, size_t most_bytes)
{
    struct lane *lane = &preparer->lanes[preparer->n_lanes];
    sigset_t all, before;
    *lane = (struct lane){.owner = preparer, .most_bytes = most_bytes};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&lane->thread, NULL, thread_main, lane);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    preparer->n_lanes += r == 0;
    return -r;
}

/* Ends the threads after what they are doing. False: until then they had not. */
static bool end_lanes(struct preparer *preparer, const struct timespec *until)
{
    int r = 0;
    pthread_mutex_lock(&preparer->lock);
    preparer->ending = true;
    pthread_cond_broadcast(&preparer->changed);
    for (uint32_t i = 0; i < preparer->n_lanes; i++)
        while (!preparer->lanes[i].ended && r == 0)
            r = until ? pthread_cond_timedwait(&preparer->changed, &preparer->lock, until)
                      : pthread_cond_wait(&preparer->changed, &preparer->lock);
    pthread_mutex_unlock(&preparer->lock);
    for (uint32_t i = 0; i < preparer->n_lanes && r == 0; i++)
        pthread_join(preparer->lanes[i].thread, NULL);
    return r == 0;
}

static void free_parts(struct preparer *preparer)
{
    pthread_mutex_destroy(&preparer->lock);
    pthread_cond_destroy(&preparer->changed);
    close(preparer->event_fd);
    grammars_free(preparer->grammars);
    free(preparer);
}

int preparer_new(const struct prompt_encoder *encoder, bool brief_lane, struct preparer **ret_preparer,
                 struct error *err)
{
    struct preparer *preparer = calloc(1, sizeof *preparer);
    if (!preparer)
        return error_set(err, -ENOMEM, "out of memory");
    preparer->encoder = encoder;
    if (grammars_new(&preparer->grammars) < 0) {
        free(preparer);
        return error_set(err, -ENOMEM, "out of memory");
    }
    preparer->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (preparer->event_fd < 0) {
        int code = -errno;
        grammars_free(preparer->grammars);
        free(preparer);
        return error_set(err, code, "eventfd: %s", strerror(-code));
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&preparer->lock, NULL);
    pthread_cond_init(&preparer->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int r = start_lane(preparer, SIZE_MAX);
    if (r == 0 && brief_lane)
        r = start_lane(preparer, BRIEF_BYTES);
    if (r < 0) {
        end_lanes(preparer, NULL);
        free_parts(preparer);
        return error_set(err, r, "cannot start a thread for prompts: %s", strerror(-r));
    }
    *ret_preparer = preparer;
    return 0;
}

bool preparer_free(struct preparer *preparer, uint32_t ms)
{
    if (!preparer)
        return true;
    uint64_t until_ns = clock_ns() + ms * CLOCK_NS_PER_MS;
    const struct timespec until = {(time_t)(until_ns / CLOCK_NS_PER_S), (long)(until_ns % CLOCK_NS_PER_S)};
    if (!end_lanes(preparer, &until))
        return false;
    free_parts(preparer);
    return true;
}

static size_t text_bytes(const struct prompt *prompt)
{
    size_t bytes = prompt->form == PROMPT_TEXT
                       ? prompt->text.len + prompt->suffix.len + prompt->files.len + prompt->document.len
                   : prompt->form == PROMPT_IDS ? prompt->ids.n * sizeof *prompt->ids.items
                                                : 0;
    for (size_t i = 0; prompt->form == PROMPT_CHAT && i < prompt->chat.n; i++)
        bytes += prompt->chat.items[i].role.len + prompt->chat.items[i].content.len +
                 prompt->chat.items[i].tool_calls.len;
    return bytes;
}

/* Whether a, which is in the list, stays before b: utlist inserts after the last for which this is negative.
 */
static int compare(const struct preparation *a, const struct preparation *b)
{
    int64_t x = (int64_t)a->expected_ns - a->priority * CLASS_NS;
    int64_t y = (int64_t)b->expected_ns - b->priority * CLASS_NS;
    return x <= y ? -1 : 1;
}

bool preparer_add(struct preparer *preparer, struct preparation *preparation)
{
    preparation->bytes = text_bytes(preparation->prompt) + preparation->tools.len +
                         (preparation->grammar ? preparation->grammar->text.len : 0);
    preparation->expected_ns = clock_ns() + preparation->bytes * NS_PER_BYTE;
    pthread_mutex_lock(&preparer->lock);
    bool fits = preparer->pending < PREPARE_MOST &&
                preparer->waiting_bytes + preparation->bytes <= PREPARE_MOST_BYTES;
    if (fits) {
        DL_INSERT_INORDER(preparer->waiting, preparation, compare);
        preparer->waiting_bytes += preparation->bytes;
        preparer->pending++;
        pthread_cond_broadcast(&preparer->changed); /* not every lane may take it */
    }
    pthread_mutex_unlock(&preparer->lock);
    return fits;
}

/* Takes it out of the list if it is there. */
static bool take_out(struct preparation **list, struct preparation *preparation)
{
    struct preparation *found;
    DL_FOREACH(*list, found)
    {
        if (found == preparation) {
            DL_DELETE(*list, found);
            return true;
        }
    }
    return false;
}

bool preparer_remove(struct preparer *preparer, struct preparation *preparation)
{
    pthread_mutex_lock(&preparer->lock);
    bool waited = take_out(&preparer->waiting, preparation);
    if (waited)
        preparer->waiting_bytes -= preparation->bytes;
    bool removed = waited || take_out(&preparer->done, preparation);
    preparer->pending -= removed;
    tell_owner(preparer);
    pthread_mutex_unlock(&preparer->lock);
    return removed;
}

uint32_t preparer_deliver(struct preparer *preparer)
{
    uint32_t n = 0;
    while (preparer->pending > 0) {
        pthread_mutex_lock(&preparer->lock);
        struct preparation *first = preparer->done;
        if (first)
            DL_DELETE(preparer->done, first);
        tell_owner(preparer);
        pthread_mutex_unlock(&preparer->lock);
        if (!first)
            break;
        preparer->pending--;
        first->done(first->arg, first);
        n++;
    }
    return n;
}

int preparer_fd(const struct preparer *preparer)
{
    return preparer->event_fd;
}

uint32_t preparer_pending(const struct preparer *preparer)
{
    return preparer->pending;
}

uint64_t preparer_busy_since(struct preparer *preparer)
{
    uint64_t since = 0;
    pthread_mutex_lock(&preparer->lock);
    for (uint32_t i = 0; i < preparer->n_lanes; i++) {
        uint64_t ns = preparer->lanes[i].busy_since_ns;
        if (ns > 0 && (since == 0 || ns < since))
            since = ns;
    }
    pthread_mutex_unlock(&preparer->lock);
    return since;
}
