/* SPDX-License-Identifier: MIT */
/* A frame is decoded as it was when it came. Frames of several attempts may stand in one log: each continues
 * the one before, whichever worker made it. */

#include "broker/books/resume.h"

#include <errno.h>

#define PAGE_BYTES ((size_t)1 << 20)

static int append_page(const struct journal_page *page, struct message_decoder *decoder, struct ids *ids)
{
    for (size_t i = 0; i < page->n; i++) {
        struct message message;
        int r = message_decode(decoder, page->items[i].data, page->items[i].len, &message, NULL);
        if (r != 0 || message.kind != MESSAGE_FRAME || message.frame.seq != ids->len)
            return r == -ENOMEM ? r : -EBADMSG;
        r = ids_append(ids, message.frame.ids.items, message.frame.ids.n);
        if (r < 0)
            return r;
    }
    return 0;
}

int resume_ids(const struct journal_log *log, struct message_decoder *decoder, struct ids *ids)
{
    struct journal_page page = {0};
    int r = 0;
    while (r == 0 && ids->len < log->count) {
        size_t before = ids->len;
        r = journal_read(log, before, PAGE_BYTES, &page);
        if (r == 0)
            r = append_page(&page, decoder, ids);
        if (r == 0 && ids->len == before)
            r = -EBADMSG;
    }
    journal_page_deinit(&page);
    return r;
}
