/* SPDX-License-Identifier: MIT */
/* Seeds of fuzz_recovery: what a broker leaves of requests that wait, run, were cancelled and have ended, in
 * the form that the entry reads. */

#include "tests/fuzz/driver.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker/books/ledger.h"
#include "broker/books/record.h"
#include "proto/message.h"

#define HEADER 4096
#define UNITS  (VAULT_STEP_BYTES / VAULT_LEAST_BYTES)
#define MOST   (64u << 10)

static struct journal journal;
static struct ledger ledger;

static struct buffer encoded(const struct message *message)
{
    struct buffer out = {0};
    if (message_encode(message, &out) != 0)
        abort();
    return out;
}

static struct request *admit(uint8_t name, size_t bytes)
{
    static char prompt[8000];
    struct request *request = ledger_add(&ledger, (struct request_key){{{name}}, {{name}}});
    struct message generate = {.kind = MESSAGE_GENERATE};
    memset(prompt, 'p', sizeof prompt);
    generate.generate.id.bytes[0] = name;
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = (struct bytes){prompt, bytes};
    struct buffer body = encoded(&generate);
    if (!request || record_make(journal.vault, request, body.data, body.len) < 0 ||
        journal_reserve(&journal, &request->log, 5000) != 0)
        abort();
    buffer_deinit(&body);
    request->prompt_tokens = bytes;
    request->epoch = (struct epoch){1, 0};
    record_keep(journal.vault, request, NULL);
    return request;
}

static void append(struct request *request, unsigned n, bool ends)
{
    int32_t id = 7;
    for (unsigned i = 0; i < n; i++) {
        struct message frame = {.kind = MESSAGE_FRAME};
        frame.frame.id = request->home.id;
        frame.frame.epoch = request->epoch;
        frame.frame.seq = frame.frame.off = request->log.count;
        frame.frame.ids = (struct id_list){&id, 1};
        frame.frame.text = BYTES_LITERAL("x");
        frame.frame.has_end = ends && i == n - 1;
        frame.frame.end.reason = END_LENGTH;
        struct buffer bytes = encoded(&frame);
        if (journal_append(&journal, &request->log, 1, 1, bytes.data, bytes.len) != 0)
            abort();
        buffer_deinit(&bytes);
    }
    if (ends)
        ledger_ended(&ledger, &journal, request, 5);
}

/* Of a block so much as is not zero at its end. */
static size_t read_block(int fd, size_t unit, size_t units, uint8_t *ret_bytes)
{
    size_t len = units * VAULT_LEAST_BYTES < MOST ? units * VAULT_LEAST_BYTES : MOST - 1;
    if (pread(fd, ret_bytes, len, (off_t)(HEADER + UNITS + unit * VAULT_LEAST_BYTES)) != (ssize_t)len)
        abort();
    while (len > 0 && ret_bytes[len - 1] == 0)
        len--;
    return len;
}

static void write_seed(int fd, bool with_header)
{
    static uint8_t marks[UNITS], bytes[MOST], out[1 << 20];
    size_t n = 1;
    out[0] = with_header;
    if (with_header && pread(fd, out + 1, 16, 0) != 16)
        abort();
    n += with_header ? 16 : 0;
    if (pread(fd, marks, UNITS, HEADER) != UNITS)
        abort();
    for (size_t unit = 0; unit < UNITS; unit++) {
        size_t units = 1;
        while (marks[unit] && unit + units < UNITS && units < MOST / VAULT_LEAST_BYTES &&
               !marks[unit + units])
            units++;
        size_t len = marks[unit] ? read_block(fd, unit, units, bytes) : 0;
        if (!marks[unit] || n + 5 + len > sizeof out)
            continue;
        const uint8_t head[5] = {(uint8_t)unit, (uint8_t)(unit >> 8), marks[unit], (uint8_t)len,
                                 (uint8_t)(len >> 8)};
        memcpy(out + n, head, sizeof head);
        memcpy(out + n + sizeof head, bytes, len);
        n += sizeof head + len;
    }
    fuzz_add_seed(out, n);
}

void fuzz_seeds(void)
{
    int fd;
    if (vault_create(VAULT_STEP_BYTES, &fd) < 0)
        abort();
    journal = (struct journal){.limit = JOURNAL_LIMIT_BYTES};
    if (vault_open(fd, &journal.vault, NULL) < 0)
        abort();
    write_seed(fd, true); /* an empty one */
    admit(1, 10);
    write_seed(fd, false);
    struct request *running = admit(2, 300);
    record_assigned(running, (struct record_holder){0, 3});
    append(running, 20, false);
    write_seed(fd, false);
    struct request *cancelled = admit(3, 10);
    append(cancelled, 1, false);
    record_cancelled(cancelled);
    append(admit(4, 7000), 3, true);
    struct request *taken = admit(5, 10);
    append(taken, 200, true);
    ledger_taken(&ledger, &journal, taken);
    write_seed(fd, true);
    struct request *request, *next;
    HASH_ITER(by_home, ledger.by_home, request, next)
    {
        ledger_remove(&ledger, &journal, request);
    }
    vault_close(journal.vault);
    close(fd);
}
