/* SPDX-License-Identifier: MIT */
/* A set of code points as an automaton over the bytes of their UTF-8.
 *
 * A range is cut where the number of bytes changes, and then so that every byte runs through a range of its
 * own whatever the others are: [U+0800, U+FFFF] is E0 [A0-BF] [80-BF] and [E1-EF] [80-BF] [80-BF]. What
 * follows the first byte is made once for all ranges that share it, and first bytes that go on alike are one
 * set: most of Unicode takes some twenty nodes. */

#include <string.h>

#include "text/grammar/machine/program_chars.h"

#define MOST_TAILS 64

struct byte_range {
    uint8_t low, high;
};

struct tail { /* bytes after the first, and the node that takes them */
    uint32_t n;
    struct byte_range ranges[3];
    uint32_t node;
};

struct chars {
    struct program_maker *maker;
    uint32_t next;
    struct tail tails[MOST_TAILS]; /* [n_tails], remembered */
    uint32_t n_tails;
    struct { /* ways to begin: the first bytes, and where they lead */
        struct byte_set first;
        uint32_t node;
    } heads[MOST_TAILS];
    uint32_t n_heads;
    uint32_t entry; /* ways that did not find room above */
};

static void add_bytes(struct byte_set *set, struct byte_range range)
{
    for (unsigned byte = range.low; byte <= range.high; byte++)
        set->bits[byte >> 6] |= 1ull << (byte & 63);
}

static uint32_t match_range(struct chars *chars, struct byte_range range, uint32_t next)
{
    struct byte_set set = {0};
    add_bytes(&set, range);
    return program_match(chars->maker, &set, next);
}

/* The node that takes these bytes and goes on behind the set. */
static uint32_t tail_node(struct chars *chars, const struct byte_range *ranges, uint32_t n)
{
    if (n == 0)
        return chars->next;
    for (uint32_t i = 0; i < chars->n_tails; i++)
        if (chars->tails[i].n == n && memcmp(chars->tails[i].ranges, ranges, n * sizeof *ranges) == 0)
            return chars->tails[i].node;
    uint32_t node = match_range(chars, ranges[0], tail_node(chars, ranges + 1, n - 1));
    if (chars->n_tails < MOST_TAILS) {
        struct tail *tail = &chars->tails[chars->n_tails++];
        *tail = (struct tail){.n = n, .node = node};
        memcpy(tail->ranges, ranges, n * sizeof *ranges);
    }
    return node;
}

static void add_sequence(struct chars *chars, const struct byte_range *ranges, uint32_t n)
{
    uint32_t node = tail_node(chars, ranges + 1, n - 1), i = 0;
    while (i < chars->n_heads && chars->heads[i].node != node)
        i++;
    if (i == MOST_TAILS) {
        uint32_t other = match_range(chars, ranges[0], node);
        chars->entry =
            chars->entry == PROGRAM_NONE ? other : program_split(chars->maker, other, chars->entry);
        return;
    }
    if (i == chars->n_heads) {
        memset(&chars->heads[i], 0, sizeof chars->heads[i]);
        chars->heads[i].node = node;
        chars->n_heads++;
    }
    add_bytes(&chars->heads[i].first, ranges[0]);
}

static uint32_t spell(uint32_t point, uint32_t n, uint8_t *ret_bytes)
{
    for (uint32_t i = n - 1; i > 0; i--, point >>= 6)
        ret_bytes[i] = (uint8_t)(0x80 | (point & 0x3f));
    ret_bytes[0] = n == 1 ? (uint8_t)point : (uint8_t)((0xf00u >> n) | point);
    return n;
}

/* A range whose ends have n bytes each. */
static void add_range(struct chars *chars, uint32_t first, uint32_t last, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) { /* the last i bytes are to run through all values, or to be equal */
        uint32_t low = (1u << 6 * i) - 1;
        if ((first & ~low) == (last & ~low))
            continue;
        if (first & low) {
            add_range(chars, first, first | low, n);
            add_range(chars, (first | low) + 1, last, n);
            return;
        }
        if ((last & low) != low) {
            add_range(chars, first, (last & ~low) - 1, n);
            add_range(chars, last & ~low, last, n);
            return;
        }
    }
    uint8_t from[4], to[4];
    struct byte_range ranges[4];
    spell(first, n, from);
    spell(last, n, to);
    for (uint32_t i = 0; i < n && i < 4; i++)
        ranges[i] = (struct byte_range){from[i], to[i]};
    add_sequence(chars, ranges, n);
}

uint32_t program_chars(struct program_maker *maker, const struct code_range *ranges, uint32_t n,
                       uint32_t next)
{
    static const uint32_t ends[] = {0x7f, 0x7ff, 0xffff, 0x10ffff};
    struct chars chars = {.maker = maker, .next = next, .entry = PROGRAM_NONE};
    for (uint32_t i = 0; i < n; i++) {
        uint32_t first = ranges[i].first;
        for (uint32_t bytes = 1; bytes <= 4 && first <= ranges[i].last; bytes++) {
            uint32_t last = ranges[i].last < ends[bytes - 1] ? ranges[i].last : ends[bytes - 1];
            if (first <= last) {
                add_range(&chars, first, last, bytes);
                first = last + 1;
            }
        }
    }
    uint32_t entry = chars.entry;
    for (uint32_t i = chars.n_heads; i-- > 0;) {
        uint32_t node = program_match(maker, &chars.heads[i].first, chars.heads[i].node);
        entry = entry == PROGRAM_NONE ? node : program_split(maker, node, entry);
    }
    static const struct byte_set nothing;
    return entry == PROGRAM_NONE ? program_match(maker, &nothing, next) : entry;
}
