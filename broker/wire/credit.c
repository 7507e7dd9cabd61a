/* SPDX-License-Identifier: MIT */
/* Counted messages.
 *
 * A message's memory is ours: one block with the count it belongs to, which libzmq gives back through a
 * callback, on a thread of its own, when the last byte was written to the kernel or the connection ended. So
 * everything that the callback touches is atomic, and a credit lives until both its owner and the last of its
 * messages have let go of it.
 *
 *     loop:     ask ── no room ──▶ wanted = true ── still none? ──▶ refused
 *     callback: counts down ──▶ room, and wanted? ──▶ wanted = false, wake
 *
 * Each side writes first and looks then, so that no wake is lost. */

#include "broker/wire/credit.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct credit {
    struct credit_total *total;
    atomic_size_t bytes, messages;
    atomic_size_t holders; /* the owner, and each message */
    atomic_bool wanted;
};

struct block {
    _Atomic(struct credit *) credit; /* stored last: what else is here is seen by who loads it */
    size_t len;
    uint8_t data[];
};

int credit_total_init(struct credit_total *total, struct error *err)
{
    atomic_init(&total->bytes, 0);
    total->waiting = 0;
    total->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return total->wake_fd < 0 ? error_set(err, -errno, "eventfd: %s", strerror(errno)) : 0;
}

void credit_total_deinit(struct credit_total *total)
{
    if (total->wake_fd >= 0)
        close(total->wake_fd);
    total->wake_fd = -1;
}

bool credit_total_woken(const struct credit_total *total)
{
    uint64_t count;
    return read(total->wake_fd, &count, sizeof count) == sizeof count;
}

struct credit *credit_new(struct credit_total *total)
{
    struct credit *credit = calloc(1, sizeof *credit);
    if (!credit)
        return NULL;
    credit->total = total;
    atomic_init(&credit->holders, 1);
    return credit;
}

static void let_go(struct credit *credit)
{
    if (atomic_fetch_sub(&credit->holders, 1) == 1)
        free(credit);
}

struct credit *credit_free(struct credit *credit)
{
    if (credit) {
        atomic_store(&credit->wanted, false);
        let_go(credit);
    }
    return NULL;
}

/* `part`: one in so many of the messages that there may be. Who has none under way always has room: nobody
 * would wake him. */
static bool has_room(struct credit *credit, size_t part)
{
    bool is_much = atomic_load(&credit->total->bytes) > CREDIT_TOTAL_BYTES;
    size_t messages = is_much ? CREDIT_FEW_MESSAGES : CREDIT_MESSAGES;
    size_t bytes = is_much ? CREDIT_FEW_BYTES : CREDIT_BYTES;
    return atomic_load(&credit->messages) < messages / part && atomic_load(&credit->bytes) <= bytes;
}

bool credit_ask(struct credit *credit)
{
    if (has_room(credit, 1))
        return true;
    /* A wake for each message that goes would cost more than the message. */
    atomic_store(&credit->wanted, true);
    return has_room(credit, 2);
}

void credit_wait(struct credit *credit, size_t len)
{
    credit->total->waiting += len;
}

void credit_wait_no_more(struct credit *credit, size_t len)
{
    credit->total->waiting -= len;
}

/* libzmq's call: this message is no longer held. */
static void freed(void *data, void *hint)
{
    struct block *block = hint;
    struct credit *credit = atomic_load(&block->credit);
    atomic_fetch_sub(&credit->total->bytes, block->len);
    atomic_fetch_sub(&credit->bytes, block->len);
    atomic_fetch_sub(&credit->messages, 1);
    if (has_room(credit, 2) && atomic_exchange(&credit->wanted, false)) {
        uint64_t one = 1;
        ssize_t written = write(credit->total->wake_fd, &one, sizeof one);
        (void)written; /* it fails only when the descriptor is readable already */
    }
    let_go(credit);
    free(block);
}

int credit_message(struct credit *credit, const void *data, size_t len, zmq_msg_t *ret_message)
{
    struct block *block = malloc(sizeof *block + len);
    if (!block)
        return -ENOMEM;
    block->len = len;
    memcpy(block->data, data, len);
    atomic_init(&block->credit, NULL);
    atomic_store(&block->credit, credit);
    if (zmq_msg_init_data(ret_message, block->data, len, freed, block) < 0) {
        free(block);
        return -ENOMEM;
    }
    atomic_fetch_add(&credit->holders, 1);
    atomic_fetch_add(&credit->messages, 1);
    atomic_fetch_add(&credit->bytes, len);
    atomic_fetch_add(&credit->total->bytes, len);
    return 0;
}
