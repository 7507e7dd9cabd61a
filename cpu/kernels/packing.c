/* SPDX-License-Identifier: MIT */
/* Packing and unpacking of weight groups, in plain C: run once at load, and by the plain path.
 *
 * Each format is a loop over eight rows that takes the file's block (gguf/blocks.h) apart and puts its
 * fields where packing.h says. Unpacking is written from packing.h's layout and not from the file's, so that
 * a test which compares it with the file format's own conversion proves both. Here are the table and the
 * formats without blocks. */

#include "cpu/kernels/packing_internal.h"

void pack_f32(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            memcpy(out + ((size_t)k * ROWS + (size_t)r) * 4, rows[r] + (size_t)k * 4, 4);
}

static void pack_halves(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    for (uint32_t k = 0; k < n; k++)
        for (int r = 0; r < ROWS; r++)
            memcpy(out + ((size_t)k * ROWS + (size_t)r) * 2, rows[r] + (size_t)k * 2, 2);
}

void pack_f16(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    pack_halves(rows, n, out);
}

void pack_bf16(const uint8_t *const rows[8], uint32_t n, uint8_t *out)
{
    pack_halves(rows, n, out);
}

void unpack_f32(const uint8_t *group, uint32_t n, float *out)
{
    memcpy(out, group, (size_t)n * ROWS * sizeof *out);
}

void unpack_f16(const uint8_t *group, uint32_t n, float *out)
{
    const uint16_t *halves = (const void *)group;
    for (uint32_t i = 0; i < n * ROWS; i++)
        out[i] = format_f16_to_f32(halves[i]);
}

void unpack_bf16(const uint8_t *group, uint32_t n, float *out)
{
    const uint16_t *halves = (const void *)group;
    for (uint32_t i = 0; i < n * ROWS; i++)
        out[i] = format_bf16_to_f32(halves[i]);
}

#define PACKING(name, id, number, elements, bytes)                                                           \
    [FORMAT_##name] = {(elements) > 1, elements, sizeof(struct packed_##id), pack_##id, unpack_##id},
static const struct packing packings[FORMAT_LIMIT] = {FORMATS(PACKING)};
#undef PACKING

const struct packing *packing_of(enum format format)
{
    return (unsigned)format < FORMAT_LIMIT && packings[format].pack ? &packings[format] : NULL;
}
