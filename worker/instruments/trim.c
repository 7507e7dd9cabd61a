/* SPDX-License-Identifier: MIT */
/* The engine gives back what it and its backend have, and then the C library what it keeps of freed memory.
 * That is counted by what the process holds before and after, and the rest by whoever gave it. */

#include "worker/instruments/trim.h"

#include <malloc.h>
#include <string.h>

#include "common/amount.h"
#include "common/log.h"
#include "common/system/resident.h"

void trimmer_init(struct trimmer *trimmer, struct link *link, struct engine *engine)
{
    *trimmer = (struct trimmer){.link = link, .engine = engine};
}

/* ---- answers ---- */

static void refuse(const struct trimmer *trimmer, uint64_t ref, enum proto_error error, const char *text)
{
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.ref = ref;
    no.error.error = error;
    no.error.text = bytes_of_string(text);
    link_send(trimmer->link, &no);
}

static void answer(struct trimmer *trimmer, uint64_t ref)
{
    if (trimmer->failure.text[0]) {
        refuse(trimmer, ref, PROTO_INTERNAL, trimmer->failure.text);
        return;
    }
    trimmer->answer.trim_ok.ref = ref;
    link_send(trimmer->link, &trimmer->answer);
}

void trimmer_take(struct trimmer *trimmer, const struct message *message)
{
    const uint64_t ref = message->trim.ref, run = message->trim.run;
    if (!trimmer->waits && run == trimmer->run) {
        answer(trimmer, ref);
        return;
    }
    if (trimmer->waits && run != trimmer->run) {
        refuse(trimmer, ref, PROTO_OVERLOADED, "this worker is already being trimmed");
        return;
    }
    if (trimmer->n_refs == TRIM_REFS) {
        refuse(trimmer, ref, PROTO_OVERLOADED, "too many requests for this trim");
        return;
    }
    trimmer->waits = true;
    trimmer->run = run;
    trimmer->prefixes = message->trim.prefixes;
    trimmer->refs[trimmer->n_refs++] = ref;
}

/* ---- giving ---- */

/* What is there at the moment; 0: not known. */
struct amounts {
    uint64_t resident, device_free;
};

static struct amounts look(const struct trimmer *trimmer)
{
    struct backend_usage usage;
    struct resident resident = {0};
    resident_read(&resident);
    engine_usage(trimmer->engine, &usage);
    return (struct amounts){resident.bytes, usage.device_free};
}

static void add(struct trimmer *trimmer, const char *kind, uint64_t bytes)
{
    size_t *n = &trimmer->answer.trim_ok.given.n;
    if (bytes > 0)
        trimmer->given[(*n)++] = (struct given_memory){bytes_of_string(kind), bytes};
}

static uint64_t trim_heap(void)
{
    struct resident before = {0}, after = {0};
    if (!resident_read(&before) || malloc_trim(0) == 0 || !resident_read(&after))
        return 0;
    return before.bytes > after.bytes ? before.bytes - after.bytes : 0;
}

static void give(struct trimmer *trimmer)
{
    struct engine_given given = {0};
    const struct amounts before = look(trimmer);
    trimmer->answer = (struct message){.kind = MESSAGE_TRIM_OK};
    trimmer->failure.text[0] = 0;
    int r = engine_give_back(trimmer->engine, trimmer->prefixes, &given);
    if (r < 0) {
        error_set(&trimmer->failure, r, "memory could not be released: %s", strerror(-r));
        return;
    }
    add(trimmer, "kv", given.backend.kv);
    add(trimmer, "states", given.backend.states);
    add(trimmer, "workspace", given.backend.workspace);
    add(trimmer, "library", given.backend.library);
    add(trimmer, "staging", given.backend.staging);
    add(trimmer, "heap", trim_heap());
    const struct amounts after = look(trimmer);
    trimmer->answer.trim_ok.given.items = trimmer->given;
    trimmer->answer.trim_ok.blocks = given.blocks;
    trimmer->answer.trim_ok.resident_before = before.resident;
    trimmer->answer.trim_ok.resident_after = after.resident;
    trimmer->answer.trim_ok.device_free_before = before.device_free;
    trimmer->answer.trim_ok.device_free_after = after.device_free;
    log_info("trimmed: the process held %s, now holds %s", amount_of_bytes(before.resident).text,
             amount_of_bytes(after.resident).text);
}

bool trimmer_tend_now(struct trimmer *trimmer)
{
    give(trimmer);
    for (uint32_t i = 0; i < trimmer->n_refs; i++)
        answer(trimmer, trimmer->refs[i]);
    trimmer->n_refs = 0;
    trimmer->waits = false;
    return true;
}
