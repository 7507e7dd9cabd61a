/* SPDX-License-Identifier: MIT */
/* A ring of records, and the answers made from it.
 *
 * While nobody watches there is no ring and the engine has no observer, so that a step costs what it cost
 * before. Steps of that time count as lost for whoever asks on from an earlier number. */

#include "worker/instruments/trace.h"

#include <stdlib.h>
#include <string.h>

/* ---- records ---- */

static uint32_t microseconds(uint64_t ns)
{
    const uint64_t us = ns / 1000;
    return us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
}

static struct trace_record *add(struct trace *trace, enum trace_what what, uint64_t now)
{
    struct trace_record *record = &trace->ring[trace->next++ % TRACE_RECORDS];
    *record = (struct trace_record){.what = what,
                                    .at_us = now > trace->begun_ns ? (now - trace->begun_ns) / 1000 : 0};
    return record;
}

void trace_add_mark(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], enum trace_what what,
                    uint64_t n, uint64_t now)
{
    struct trace_record *record = add(trace, what, now);
    memcpy(&record->session, topic, sizeof record->session);
    memcpy(&record->id, topic + sizeof record->session, sizeof record->id);
    record->n = n;
}

void trace_admitted(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], struct bytes request_id,
                    uint64_t queue_us, uint64_t now)
{
    if (!trace || !trace->ring)
        return;
    trace_add_mark(trace, topic, TRACE_ADMITTED, queue_us, now);
    const uint64_t at = (trace->next - 1) % TRACE_RECORDS;
    const size_t len = request_id.len <= PROTO_MAX_NAME_BYTES ? request_id.len : 0;
    if (len > 0)
        memcpy(trace->names[at], request_id.data, len);
    trace->ring[at].request_id = (struct bytes){(const uint8_t *)trace->names[at], len};
}

void trace_end(struct trace *trace, const uint8_t topic[PROTO_TOPIC_BYTES], const struct ending *ending,
               uint64_t n_output)
{
    if (!trace || !trace->ring)
        return;
    if (ending->reason == END_ERROR && ending->error == PROTO_DRAINING) {
        trace_add_mark(trace, topic, TRACE_GIVEN_BACK, n_output, clock_ns());
        return;
    }
    trace_add_mark(trace, topic, TRACE_END, n_output, clock_ns());
    trace->ring[(trace->next - 1) % TRACE_RECORDS].reason = ending->reason;
}

static void on_step(void *arg, const struct engine_step_facts *facts)
{
    struct trace_record *record = add(arg, TRACE_STEP, facts->read_ns);
    record->n = facts->number;
    record->decode_rows = facts->decode_rows;
    record->prefill_rows = facts->prefill_rows;
    record->padding_rows = facts->backend.padding_rows;
    record->ids = facts->ids;
    record->total_us = microseconds(facts->read_ns - facts->begun_ns);
    record->embed_us = microseconds(facts->backend.embed_ns);
    record->layers_us = microseconds(facts->backend.layers_ns);
    record->sample_us = microseconds(facts->backend.sample_ns);
}

static void on_mark(void *arg, uint64_t tag, enum engine_mark mark, uint64_t n, uint64_t now)
{
    static const enum trace_what whats[] = {
        [ENGINE_MARK_SLOT] = TRACE_SLOT,
        [ENGINE_MARK_PREFIX] = TRACE_PREFIX,
        [ENGINE_MARK_PREFILL_BEGIN] = TRACE_PREFILL_BEGIN,
        [ENGINE_MARK_PREFILL_END] = TRACE_PREFILL_END,
        [ENGINE_MARK_FIRST_TOKEN] = TRACE_FIRST_TOKEN,
        [ENGINE_MARK_SLOT_LOST] = TRACE_SLOT_LOST,
    };
    struct trace *trace = arg;
    trace_add_mark(trace, trace->topic_of(tag), whats[mark], n, now);
}

/* ---- watching ---- */

void trace_init(struct trace *trace, struct link *link, struct engine *engine, uint32_t incarnation,
                const uint8_t *(*topic_of)(uint64_t tag))
{
    *trace = (struct trace){.link = link,
                            .engine = engine,
                            .topic_of = topic_of,
                            .observer = {.step = on_step, .mark = on_mark, .arg = trace},
                            .incarnation = incarnation,
                            .begun_ns = clock_ns(),
                            .next = 1};
}

static void free_ring(struct trace *trace)
{
    free(trace->ring);
    free(trace->told);
    free(trace->names);
    trace->ring = trace->told = NULL;
    trace->names = NULL;
}

/* False: there is no memory. */
static bool begin(struct trace *trace)
{
    if (trace->ring)
        return true;
    trace->ring = malloc(TRACE_RECORDS * sizeof *trace->ring);
    trace->told = malloc(PROTO_MAX_TRACE * sizeof *trace->told);
    trace->names = malloc(TRACE_RECORDS * sizeof *trace->names);
    if (!trace->ring || !trace->told || !trace->names) {
        free_ring(trace);
        return false;
    }
    if (trace->until_ns > 0)
        trace->next += engine_steps(trace->engine) - trace->steps;
    trace->first = trace->next;
    engine_observe(trace->engine, &trace->observer);
    return true;
}

static void stop(struct trace *trace)
{
    engine_observe(trace->engine, NULL);
    trace->steps = engine_steps(trace->engine);
    free_ring(trace);
}

void trace_close(struct trace *trace)
{
    free_ring(trace);
    *trace = (struct trace){0};
}

void trace_expire(struct trace *trace, uint64_t now)
{
    if (trace->ring && now >= trace->until_ns)
        stop(trace);
}

/* ---- answers ---- */

void trace_take(struct trace *trace, const struct message *message, uint64_t now)
{
    if (!begin(trace)) {
        link_refuse(trace->link, message->trace.ref, PROTO_INTERNAL, "the worker is out of memory");
        return;
    }
    trace->until_ns = now + TRACE_LEASE_NS;
    struct message answer = {.kind = MESSAGE_TRACE_OK};
    const uint64_t kept = trace->next > TRACE_RECORDS ? trace->next - TRACE_RECORDS : 1;
    const uint64_t oldest = trace->first > kept ? trace->first : kept;
    uint64_t from = message->trace.from;
    if (from == 0 || from > trace->next) /* of now, or of another process that was here */
        from = trace->next;
    if (from < oldest) {
        answer.trace_ok.lost = oldest - from;
        from = oldest;
    }
    const uint32_t most = message->trace.most ? message->trace.most : PROTO_MAX_TRACE;
    size_t n = 0;
    for (; from < trace->next && n < most; from++)
        trace->told[n++] = trace->ring[from % TRACE_RECORDS];
    answer.trace_ok.ref = message->trace.ref;
    answer.trace_ok.incarnation = trace->incarnation;
    answer.trace_ok.next = from;
    answer.trace_ok.records.items = trace->told;
    answer.trace_ok.records.n = n;
    link_send(trace->link, &answer);
}
