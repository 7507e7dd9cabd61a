/* SPDX-License-Identifier: MIT */
/* The greeting has 64 bytes, WELCOME 2 of a header and 168 of its body. What comes next is a command's flags,
 * its length, which says nothing, and its name. */

#include "broker/wire/handshake.h"

#include "broker/wire/zmtp.h"

#define VERDICT_AT (ZMTP_GREETING_BYTES + 2 + 168)

static const uint8_t ready[] = {ZMTP_COMMAND, 0, 5, 'R', 'E', 'A', 'D', 'Y'};

static void take_byte(struct handshake *handshake, uint8_t byte)
{
    const size_t at = handshake->sent++;
    if (at < VERDICT_AT || at == VERDICT_AT + 1)
        return;
    handshake->refused |= byte != ready[at - VERDICT_AT];
    handshake->let_in = at + 1 == VERDICT_AT + sizeof ready && !handshake->refused;
}

void handshake_sent(struct handshake *handshake, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n && handshake->sent < VERDICT_AT + sizeof ready; i++)
        take_byte(handshake, bytes[i]);
}
