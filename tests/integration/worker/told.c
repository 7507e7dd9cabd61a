/* SPDX-License-Identifier: MIT */
#include "tests/integration/worker/told.h"

#include <check.h>

void told_deinit(struct told *told)
{
    ids_deinit(&told->ids);
    buffer_deinit(&told->text);
}

void take_frame(struct told *told, const struct frame *frame)
{
    ck_assert(!told->ended);
    ck_assert_uint_eq(frame->seq, told->ids.len);
    ck_assert_uint_eq(frame->off, told->text.len);
    ids_append(&told->ids, frame->ids.items, frame->ids.n);
    buffer_append(&told->text, frame->text.data, frame->text.len);
    told->frames++;
    told->last_wseq = frame->wseq;
    told->ended = frame->has_end;
    if (frame->has_end)
        told->end = frame->end; /* its text is not looked at later */
}

struct told read_request(struct scripted *s, uint8_t id)
{
    struct told told = {0};
    struct frame frame;
    while (!told.ended) {
        ck_assert_msg(next_frame(s, WAIT_MS, &frame), "no end of the request came");
        ck_assert_uint_eq(frame.id.bytes[0], id);
        ck_assert_uint_eq(s->topic[0], 1);
        ck_assert_uint_eq(s->topic[16], id);
        take_frame(&told, &frame);
    }
    return told;
}

void ack(struct scripted *s, uint64_t wseq)
{
    struct message message = {.kind = MESSAGE_ACK};
    message.ack.wseq = wseq;
    say(s, &message);
}

void check_serves(struct scripted *s, uint8_t id)
{
    struct message assign = assignment(id, 5, 20);
    say(s, &assign);
    struct told told = read_request(s, id);
    struct message finished = expect(s, MESSAGE_FINISHED);
    ck_assert_int_eq(told.end.reason, END_LENGTH);
    ck_assert_uint_eq(told.ids.len, 20);
    ck_assert_uint_eq(finished.finished.count, 20);
    ck_assert_uint_eq(finished.finished.id.bytes[0], id);
    ck_assert_uint_eq(finished.finished.wseq, told.last_wseq);
    ck_assert_uint_eq(finished.finished.end.usage.prompt_tokens, 5);
    told_deinit(&told);
}
