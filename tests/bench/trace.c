/* SPDX-License-Identifier: MIT */
/* What a watched worker pays: nanoseconds of noting a step and a stage of a request, and of an answer of
 * 1,024 records, encoded by the worker and decoded by the broker, on one thread.
 *
 *   build/tests/bench/trace
 *
 * The least of many rounds, and their median. While nobody watches a step costs a few branches, which this
 * cannot measure. */

#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "worker/instruments/trace.h"

enum { ROUNDS = 200, RECORDS = PROTO_MAX_TRACE };

bool __wrap_link_send(struct link *link, const struct message *message);
void __wrap_engine_observe(struct engine *engine, const struct engine_observer *observer);
void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats);

static struct trace trace;
static struct buffer wire;
static struct message_decoder *decoder;

bool __wrap_link_send(struct link *link, const struct message *message)
{
    wire.len = 0;
    return message_encode(message, &wire) == 0;
}

void __wrap_engine_observe(struct engine *engine, const struct engine_observer *observer)
{
}

void __wrap_engine_stats(const struct engine *engine, struct engine_stats *ret_stats)
{
    *ret_stats = (struct engine_stats){0};
}

static const uint8_t *topic_of(uint64_t tag)
{
    static const uint8_t topic[PROTO_TOPIC_BYTES] = {1, 2, 3};
    return topic;
}

static void ask(uint64_t from)
{
    const struct message question = {.kind = MESSAGE_TRACE, .trace = {.ref = 1, .from = from}};
    trace_take(&trace, &question, clock_ns());
}

/* With the clock that the parts of a step need: two more looks at it in a pass, and one around sampling. */
static void note_steps(void)
{
    for (uint64_t i = 0; i < RECORDS; i++) {
        const struct engine_step_facts facts = {
            .number = i,
            .decode_rows = 16,
            .ids = 16,
            .begun_ns = clock_ns(),
            .read_ns = clock_ns() + 1000000,
            .backend = {0, 12000, clock_ns() % 900000, clock_ns() % 90000}};
        trace.observer.step(trace.observer.arg, &facts);
    }
}

static void note_marks(void)
{
    for (uint64_t i = 0; i < RECORDS; i++)
        trace.observer.mark(trace.observer.arg, i, ENGINE_MARK_PREFIX, 64, clock_ns());
}

static void answer(void)
{
    ask(trace.next - RECORDS);
}

static void decode(void)
{
    struct message message;
    struct error err;
    if (message_decode(decoder, wire.data, wire.len, &message, &err) != 0 ||
        message.trace_ok.records.n != RECORDS)
        exit(EXIT_FAILURE);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *what, void (*work)(void))
{
    double took[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        const uint64_t begun = clock_ns();
        work();
        took[i] = (double)(clock_ns() - begun) / RECORDS;
    }
    qsort(took, ROUNDS, sizeof *took, compare);
    printf("%-34s %8.1f %8.1f\n", what, took[0], took[ROUNDS / 2]);
}

int main(void)
{
    if (message_decoder_new(&decoder) < 0)
        return EXIT_FAILURE;
    trace_init(&trace, NULL, NULL, 1, topic_of);
    ask(0);
    printf("%-34s %8s %8s\n", "ns a record", "least", "median");
    measure("a stage of a request", note_marks);
    measure("a step, with its clocks", note_steps);
    measure("a record of an answer, encoded", answer);
    measure("a record of an answer, decoded", decode);
    printf("%zu bytes a record\n", wire.len / RECORDS);
    trace_close(&trace);
    buffer_deinit(&wire);
    message_decoder_free(decoder);
    return EXIT_SUCCESS;
}
