/* SPDX-License-Identifier: MIT */
/* Any bytes as what a broker that was killed has left in the vault: the next one takes over what makes sense,
 * every frame of it can be read, and when all is forgotten nothing is left in the vault.
 *
 * An input is a byte, whose lowest bit says that the header is among what follows (16 bytes), and then
 * blocks: the number of the first unit (2 bytes), the mark of that unit, how many bytes come (2), the bytes.
 * Numbers have the lower byte first. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "broker/core/lifecycle.h"
#include "broker/core/recover.h"

#define HEADER 4096
#define UNITS  (VAULT_STEP_BYTES / VAULT_LEAST_BYTES)

static struct broker *new_broker(struct vault *vault)
{
    struct broker *broker = calloc(1, sizeof *broker);
    if (!broker)
        abort();
    broker->journal = (struct journal){.limit = JOURNAL_LIMIT_BYTES, .vault = vault};
    static struct board_slot turns;
    broker->supervisor.boot = 9;
    broker->supervisor.turns = &turns;
    broker->now = 1000;
    broker->admission.max_queued = ADMISSION_MAX_QUEUED;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    broker->routing = (struct routing){.workers = broker->workers};
    queue_init(&broker->queue, 1);
    growth_init(&broker->growth, &broker->journal, &broker->ledger, &broker->admission);
    if (message_decoder_new(&broker->request_decoder) < 0 || message_decoder_new(&broker->frame_decoder) < 0)
        abort();
    return broker;
}

static void forget_all(struct broker *broker)
{
    struct request *request, *next;
    while ((request = queue_first(&broker->queue, QUEUE_ALL))) {
        queue_remove(&broker->queue, request);
        admission_dequeued(&broker->admission, request);
        admission_ended(&broker->admission, request, broker->now);
        session_unbind(&broker->sessions, request);
    }
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        ledger_remove(&broker->ledger, &broker->journal, request);
    }
}

static void free_broker(struct broker *broker)
{
    queue_deinit(&broker->queue);
    growth_deinit(&broker->growth);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    buffer_deinit(&broker->client_link.scratch);
    message_decoder_free(broker->request_decoder);
    message_decoder_free(broker->frame_decoder);
    free(broker);
}

/* From its first id to its last, in small pages. */
static void read_all(struct broker *broker, const struct request *request)
{
    uint64_t next = 0;
    do {
        if (journal_read(&request->log, next, 1000, &broker->page) < 0)
            return;
        for (size_t i = 0; i < broker->page.n; i++) {
            volatile uint8_t sum = 0;
            for (size_t j = 0; j < broker->page.items[i].len; j++)
                sum += ((const uint8_t *)broker->page.items[i].data)[j];
        }
        if (!broker->page.done && broker->page.next <= next)
            abort();
        next = broker->page.next;
    } while (!broker->page.done);
}

static void write_at(int fd, const void *data, size_t len, size_t at)
{
    if (pwrite(fd, data, len, (off_t)at) != (ssize_t)len)
        abort();
}

static void fill(int fd, const uint8_t *data, size_t len)
{
    if (data[0] & 1 && len >= 17) {
        write_at(fd, data + 1, 16, 0);
        data += 16;
        len -= 16;
    }
    for (data++, len--; len >= 5;) {
        size_t unit = (data[0] | (size_t)data[1] << 8) % UNITS, n = data[3] | (size_t)data[4] << 8;
        size_t room = (UNITS - unit) * VAULT_LEAST_BYTES;
        write_at(fd, data + 2, 1, HEADER + unit);
        data += 5;
        len -= 5;
        n = n < len ? n : len;
        write_at(fd, data, n < room ? n : room, HEADER + UNITS + unit * VAULT_LEAST_BYTES);
        data += n;
        len -= n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct vault *vault;
    struct error err = {{0}};
    int fd;
    if (len == 0 || vault_create(VAULT_STEP_BYTES, &fd) < 0)
        return 0;
    fill(fd, data, len);
    int r = vault_open(fd, &vault, &err);
    if (r < 0) {
        if (r != -EINVAL || !err.text[0])
            abort();
        close(fd);
        return 0;
    }
    struct broker *broker = new_broker(vault);
    r = recover(broker, &err);
    if (r < 0)
        abort();
    struct request *request, *next;
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        read_all(broker, request);
    }
    forget_all(broker);
    if (broker->ledger.n != 0 || vault_used(vault) != 0)
        abort();
    free_broker(broker);
    vault_close(vault);
    close(fd);
    return 0;
}
