/* SPDX-License-Identifier: MIT */
/* See body_reader.h.
 *
 * Three lanes wait for the thread: small bodies, long conversations, and huge ones. It takes from each in
 * turn, so none waits for more than one body of each other lane. What has been read waits in a third list for
 * the loop, which an eventfd wakes. The lock is held for a few pointers only. */

#include "gateway/forms/body_reader.h"

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "gateway/core/gateway.h"
#include "gateway/json/json_memory.h"

#include <utlist.h>

#define SMALL_BYTES   (16u << 10) /* of a body that may be read on the loop: 2 ms at worst */
#define MEDIUM_BYTES  (256u << 10)
#define AT_ONCE_BYTES (64u << 10) /* of all such bodies in one turn of the loop */
#define SMALL_TREE    (4u << 20)  /* of such a body: the largest needs 1.3 MB */

enum lane { SMALL, MEDIUM, LARGE, LANES };

struct body_reader {
    struct json_memory at_once; /* the loop's own */
    size_t read_at_once;        /* bytes in this turn */

    pthread_t thread;
    struct json_memory memory; /* the thread's own */
    int wake_fd;
    pthread_mutex_t lock; /* of all that follows */
    pthread_cond_t submitted;
    struct body_reading *waiting[LANES]; /* utlist */
    struct body_reading *read;           /* utlist */
    size_t tree_bytes;                   /* of the thread's memory, from the next body on */
    bool tidy, stopping;
};

static void read_body(struct body_reading *reading, struct json_memory *memory)
{
    const struct bytes body = {reading->body.data, reading->body.len};
    json_memory_begin(memory);
    reading->result = parameters_read(reading->into, reading->rows, body, &reading->refusal);
    if (reading->result == 0 && reading->finish)
        reading->result = reading->finish(reading, &reading->refusal);
    json_memory_end(memory);
    buffer_deinit(&reading->body);
}

/* ---- the thread ---- */

static struct body_reading *take_next(struct body_reader *reader, enum lane *turn)
{
    for (unsigned i = 0; i < LANES; i++) {
        const unsigned lane = (*turn + i) % LANES;
        struct body_reading *next = reader->waiting[lane];
        if (!next)
            continue;
        DL_DELETE(reader->waiting[lane], next);
        *turn = (enum lane)((lane + 1) % LANES);
        return next;
    }
    return NULL;
}

static void grow(struct json_memory *memory, size_t bytes)
{
    struct json_memory more;
    if (bytes <= memory->size || json_memory_init(&more, bytes) < 0)
        return;
    json_memory_deinit(memory);
    *memory = more;
}

static void *run(void *arg)
{
    struct body_reader *reader = arg;
    struct body_reading *next;
    enum lane turn = SMALL;
    pthread_mutex_lock(&reader->lock);
    while ((next = take_next(reader, &turn)) || !reader->stopping) {
        bool tidy = !next && reader->tidy;
        const size_t tree_bytes = reader->tree_bytes;
        if (!next && !tidy) {
            pthread_cond_wait(&reader->submitted, &reader->lock);
            continue;
        }
        pthread_mutex_unlock(&reader->lock);
        if (tidy) {
            malloc_trim(0);
        } else {
            grow(&reader->memory, tree_bytes);
            read_body(next, &reader->memory);
        }
        pthread_mutex_lock(&reader->lock);
        if (tidy) {
            reader->tidy = false;
        } else {
            DL_APPEND(reader->read, next);
            eventfd_write(reader->wake_fd, 1);
        }
    }
    pthread_mutex_unlock(&reader->lock);
    return NULL;
}

/* ---- the loop ---- */

static void on_gone(void *arg)
{
    ((struct body_reading *)arg)->exchange = NULL;
}

/* What the parameters hold takes the place of the body in the budget. */
static void recount(struct body_reading *reading)
{
    struct parameters *parameters = reading->into;
    budget_give(parameters->budget, reading->counted);
    reading->counted = 0;
    if (reading->result != 0 || parameters_count(parameters))
        return;
    reading->result =
        refuse(&reading->refusal, 429, "rate_limit_exceeded", NULL, "the gateway is receiving too much data");
    reading->refusal.retry_after_s = 1;
}

static void hand_over(struct body_reading *reading)
{
    struct exchange *exchange = reading->exchange;
    recount(reading);
    if (exchange)
        exchange_when_gone(exchange, NULL, NULL);
    if (exchange && reading->result != 0) {
        reading->exchange = NULL;
        exchange_refuse(exchange, &reading->refusal);
    }
    reading->then(reading);
}

/* Without reading it: nobody new is served, and whoever is told so gives way to those who were before. */
static void refuse_drained(struct body_reading *reading)
{
    reading->result = refuse(&reading->refusal, 503, "draining", NULL, "the gateway is shutting down");
    reading->refusal.retry_after_s = 1;
    buffer_deinit(&reading->body);
    hand_over(reading);
}

void body_read(struct exchange *exchange, struct body_reading *reading)
{
    struct body_reader *reader = exchange->gateway->body_reader;
    const size_t len = exchange->body.len;
    reading->exchange = exchange;
    reading->into->budget = exchange_bodies(exchange);
    reading->body = exchange->body;
    reading->counted = exchange->body_counted;
    exchange->body = (struct buffer){0};
    exchange->body_counted = 0;
    if (exchange->gateway->draining) {
        refuse_drained(reading);
        return;
    }
    if (len <= SMALL_BYTES && reader->read_at_once + len <= AT_ONCE_BYTES) {
        reader->read_at_once += len;
        read_body(reading, &reader->at_once);
        hand_over(reading);
        return;
    }
    exchange_when_gone(exchange, on_gone, reading);
    pthread_mutex_lock(&reader->lock);
    const enum lane lane = len <= SMALL_BYTES ? SMALL : len <= MEDIUM_BYTES ? MEDIUM : LARGE;
    DL_APPEND(reader->waiting[lane], reading);
    pthread_cond_signal(&reader->submitted);
    pthread_mutex_unlock(&reader->lock);
}

void body_reader_deliver(struct body_reader *reader)
{
    struct body_reading *reading, *next, *read;
    eventfd_t count;
    reader->read_at_once = 0;
    pthread_mutex_lock(&reader->lock);
    read = reader->read;
    reader->read = NULL;
    if (read)
        eventfd_read(reader->wake_fd, &count);
    pthread_mutex_unlock(&reader->lock);
    DL_FOREACH_SAFE(read, reading, next)
    {
        hand_over(reading);
    }
}

void body_reader_allow(struct body_reader *reader, size_t tree_bytes)
{
    pthread_mutex_lock(&reader->lock);
    reader->tree_bytes = tree_bytes;
    pthread_mutex_unlock(&reader->lock);
}

void body_reader_tidy(struct body_reader *reader)
{
    pthread_mutex_lock(&reader->lock);
    reader->tidy = true;
    pthread_cond_signal(&reader->submitted);
    pthread_mutex_unlock(&reader->lock);
}

int body_reader_fd(const struct body_reader *reader)
{
    return reader->wake_fd;
}

/* ---- beginning and end ---- */

static void free_reader(struct body_reader *reader)
{
    if (reader->wake_fd >= 0)
        close(reader->wake_fd);
    json_memory_deinit(&reader->at_once);
    json_memory_deinit(&reader->memory);
    pthread_cond_destroy(&reader->submitted);
    pthread_mutex_destroy(&reader->lock);
    free(reader);
}

int body_reader_start(size_t tree_bytes, struct body_reader **ret_reader, struct error *err)
{
    struct body_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return error_set(err, -ENOMEM, "out of memory");
    pthread_mutex_init(&reader->lock, NULL);
    pthread_cond_init(&reader->submitted, NULL);
    int r = 0;
    reader->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (reader->wake_fd < 0)
        r = error_set(err, -errno, "eventfd: %s", strerror(errno));
    else if (json_memory_init(&reader->at_once, SMALL_TREE) < 0 ||
             json_memory_init(&reader->memory, tree_bytes) < 0)
        r = error_set(err, -ENOMEM, "no address space to read bodies in: %zu MiB", tree_bytes >> 20);
    if (r == 0) {
        r = -pthread_create(&reader->thread, NULL, run, reader);
        if (r < 0)
            error_set(err, r, "cannot start a thread: %s", strerror(-r));
    }
    if (r < 0)
        free_reader(reader);
    else
        *ret_reader = reader;
    return r;
}

struct body_reader *body_reader_stop(struct body_reader *reader)
{
    if (!reader)
        return NULL;
    pthread_mutex_lock(&reader->lock);
    reader->stopping = true;
    pthread_cond_signal(&reader->submitted);
    pthread_mutex_unlock(&reader->lock);
    pthread_join(reader->thread, NULL);
    body_reader_deliver(reader);
    free_reader(reader);
    return NULL;
}
