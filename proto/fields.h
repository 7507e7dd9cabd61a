/* SPDX-License-Identifier: MIT */
#ifndef PROTO_FIELDS_H
#define PROTO_FIELDS_H

/* The format of messages, as data. Each kind has a table of fields, which both decode.c and encode.c walk, so
 * reading and writing agree and have the same bounds. libquern uses it to set and show fields by name. */

#include "proto/message.h"

/* Most keys of one map, including unknown ones. */
#define FIELDS_MAX_KEYS 96
/* Deepest nesting of containers, including the message's own map. */
#define FIELDS_MAX_DEPTH 8
/* Largest value of counters (seq, off, wseq, …): every language represents it exactly. */
#define FIELDS_MAX_COUNTER (1ull << 53)

/* The comments give the type in the struct, then the form on the wire. */
enum field_type {
    FIELD_BOOL = 1, /* bool; bool */
    FIELD_U32,      /* uint32_t; integer, low … high */
    FIELD_U64,      /* uint64_t; integer, low … high */
    FIELD_I32,      /* int32_t; integer, low … high */
    FIELD_REAL,     /* double; real or integer, real_low … real_high */
    FIELD_ENUM,     /* an enum; str, one of `names` from index `low` on */
    FIELD_ID,       /* struct id128; bin of 16 bytes */
    FIELD_DIGEST,   /* struct bytes; bin of 16 bytes */
    FIELD_FLOATS,   /* struct bytes; bin of float 32, little-endian, ≤ high of them */
    FIELD_BIN,      /* struct bytes; bin, low … high bytes */
    FIELD_TEXT,     /* struct bytes; str, UTF-8, ≤ high bytes */
    FIELD_NAME,     /* struct bytes; the same without control characters */
    FIELD_EPOCH,    /* struct epoch; [boot, move] */
    FIELD_RANGE,    /* struct version_range; [min, max] */
    FIELD_NAMES,    /* struct text_list; [str], ≤ high of low … item_high bytes each */
    FIELD_IDS,      /* struct id_list; [integer], ≤ high */
    FIELD_BINS,     /* {const struct bytes *items; n}; [bin], ≤ high of ≤ item_high bytes each */
    FIELD_PROMPT,   /* struct prompt; str, [integer] or [{role, content}] */
    FIELD_BIASES, /* struct logit_bias_list; [[id, real] …], ≤ high of real_low … real_high, or −∞, each */
    FIELD_LOGPROBS,  /* struct frame_logprobs; [[[id, real] …] …], ≤ high in a row */
    FIELD_MAP,       /* the sub-table's struct; map */
    FIELD_HISTOGRAM, /* struct histogram; [integer …]: its sum, then its counts */
    FIELD_MAPS,      /* {const item *items; n}; [map], ≤ high */
};

enum {
    FIELD_REQUIRED = 1, /* decoding fails without it */
    FIELD_ALWAYS = 2,   /* encoded even if zero, so that a receiver's default never replaces it */
    FIELD_LEFT = 4,     /* a sampling parameter; NaN or SAMPLING_LEFT_COUNT if omitted */
};

struct name_table {
    const char *const *names;
    uint32_t n;
};

struct field {
    const char *key;
    uint8_t key_len;
    uint8_t type; /* enum field_type */
    uint8_t flags;
    uint16_t present; /* offset of a bool that is set if the key is present; 0: none */
    uint32_t offset;  /* of the value in the table's struct */
    int64_t low;
    uint64_t high;      /* of an integer, or most bytes or items */
    uint64_t item_high; /* most bytes of a list's item */
    double real_low, real_high;
    double initial;     /* default of a number or flag; with FIELD_LEFT, the default if it is set nowhere */
    const char *help;   /* for a key of generate: what it does, in a few words */
    const char *letter; /* placeholder for its value in option help; NULL: not an option */
    const struct name_table *names;
    const struct field_table *table; /* of FIELD_MAP, FIELD_MAPS */
};

struct field_table {
    const struct field *fields;
    uint8_t n;
    uint32_t size; /* of the struct, for FIELD_MAPS */
    int (*check)(const void *value,
                 struct error *err); /* checks that involve several fields; 0 or a code; NULL: none */
};

/* A set of a table's fields: bit i is the field at i. */
typedef unsigned __int128 field_set;
#define FIELD_TABLE_MOST 128 /* fields of a table */

/* All lists in message structs have this layout. */
struct list {
    const void *items;
    size_t n;
};

/* Returns the fields of a kind, without "k"; NULL for MESSAGE_NONE and for kinds that do not exist. */
const struct field_table *field_table_of(enum message_kind kind);

/* Returns the fields of a chat message, an item of a prompt that is a list of maps. */
const struct field_table *field_table_of_chat(void);

/* Returns the field with this key, or NULL. */
const struct field *field_find(const struct field_table *table, const char *key);

/* Sets numbers and flags to their defaults; the rest of the struct must be zeroed. */
void field_table_initials(const struct field_table *table, void *ret_value);

/* Returns the largest size in bytes of a message of this kind. */
size_t message_max_bytes(enum message_kind kind);

extern const struct name_table names_of_kinds, names_of_errors, names_of_reasons, names_of_limits,
    names_of_states, names_of_traces, names_of_policies, names_of_grammars;
bool name_find(const struct name_table *table, struct bytes name, uint32_t *ret_value);
enum message_kind message_kind_find(struct bytes name); /* MESSAGE_NONE: no such kind */

/* ---- checks of values, for decoding and encoding: 0, or MESSAGE_E_MALFORMED with a reason ---- */

int field_check_unsigned(const struct field *field, uint64_t value, struct error *err);
int field_check_signed(const struct field *field, int64_t value, struct error *err);
int field_check_real(const struct field *field, double value, struct error *err);
int field_check_text(struct bytes text, uint64_t max, bool name, struct error *err);
int field_check_item(const struct field *field, struct bytes item, struct error *err); /* of a list */
int field_check_logprob(float value, struct error *err);
int field_check_bin(const struct field *field, struct bytes bin, struct error *err);
int field_check_floats(const struct field *field, struct bytes floats, struct error *err);
int field_check_count(uint64_t n, uint64_t max, struct error *err);

/* ---- checks of fields that depend on one another, of a table's struct; the same results ---- */

int field_table_check_usage(const void *usage, struct error *err);
int field_table_check_ending(const void *ending, struct error *err); /* the others have a struct message */
int field_table_check_generate(const void *message, struct error *err);
int field_table_check_generation(const void *message, struct error *err);
int field_table_check_part(const void *message, struct error *err);
int field_table_check_tokenize(const void *message, struct error *err);
int field_table_check_tenants(const void *message, struct error *err);
int field_table_check_credit(const void *message, struct error *err);

#endif
