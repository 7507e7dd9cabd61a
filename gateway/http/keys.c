/* SPDX-License-Identifier: MIT */
/* See keys.h. */

#include "gateway/http/keys.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"
#include "common/amount.h"
#include "common/number.h"
#include "common/files/secret_file.h"

#define FILE_BYTES_MOST (4u << 20)

/* The hash of a name, in hexadecimal. */
static void write_hash(const char *name, char ret_text[33])
{
    const struct hash128 hash = hash128(name, strlen(name), 0);
    snprintf(ret_text, 33, "%016" PRIx64 "%016" PRIx64, hash.high, hash.low);
}

static int take_group(struct key *key, const char *name, struct error *err)
{
    if (name[0] == 0 || strlen(name) >= sizeof key->name)
        return error_set(err, -EINVAL, "the name of the group is %s",
                         name[0] ? "longer than 63 bytes" : "empty");
    if (key->space[0] == 'g')
        return error_set(err, -EINVAL, "%s: more than one group", key->name);
    key->space[0] = 'g';
    write_hash(name, key->space + 1);
    return 0;
}

static int take_number(uint64_t *number, const char *name, const char *value, uint64_t most,
                       struct error *err)
{
    if (*number > 0)
        return error_set(err, -EINVAL, "%s is given twice", name);
    int r = number_read(value, 1, most, number, err);
    return r < 0 ? error_prefix(err, r, "%s", name) : 0;
}

static int take_word(struct key *key, const char *word, struct error *err)
{
    const struct {
        const char *name;
        uint64_t *number, most;
    } numbers[] = {{"requests", &key->most_requests, INT64_MAX}, {"tokens", &key->most_tokens, INT64_MAX},
                   {"rpm", &key->rpm, KEYS_MOST_RATE},           {"tpm", &key->tpm, KEYS_MOST_RATE},
                   {"rpd", &key->rpd, KEYS_MOST_RATE},           {"tpd", &key->tpd, KEYS_MOST_RATE},
                   {"priority", &key->priority, KEYS_PRIORITY}};
    const char *value = strchr(word, '=');
    const size_t len = value ? (size_t)(value - word) : 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers && value; i++)
        if (strlen(numbers[i].name) == len && memcmp(word, numbers[i].name, len) == 0)
            return take_number(numbers[i].number, numbers[i].name, value + 1, numbers[i].most, err);
    if (value && len == 5 && memcmp(word, "group", len) == 0)
        return take_group(key, value + 1, err);
    return error_set(err, -EINVAL,
                     "\"%.40s\": expected requests=N, tokens=N, rpm=N, tpm=N, rpd=N, tpd=N, priority=N or "
                     "group=NAME",
                     word);
}

/* The line is zero-terminated and may be changed. What is refused leaves a part of the key behind. */
static int take_line(char *line, struct key *ret_key, struct error *err)
{
    static const char blank[] = " \t\r";
    char *rest, *name = strtok_r(line, blank, &rest), *secret = strtok_r(NULL, blank, &rest), *word;
    int r = 0;
    if (!secret)
        return error_set(err, -EINVAL,
                         "expected NAME KEY [requests=N] [tokens=N] [rpm=N] [tpm=N] [rpd=N] "
                         "[tpd=N] [priority=N] [group=NAME]");
    *ret_key = (struct key){.secret_len = strlen(secret)};
    if (strlen(name) >= sizeof ret_key->name)
        return error_set(err, -EINVAL, "the name has more than %zu bytes", sizeof ret_key->name - 1);
    if (ret_key->secret_len < KEY_BYTES_LEAST || ret_key->secret_len > KEY_BYTES_MOST)
        return error_set(err, -EINVAL, "the key of %s has %zu bytes; %d to %d are allowed", name,
                         ret_key->secret_len, KEY_BYTES_LEAST, KEY_BYTES_MOST);
    strcpy(ret_key->name, name);
    strcpy(ret_key->secret, secret);
    write_hash(name, ret_key->tenant);
    snprintf(ret_key->space, sizeof ret_key->space, "k%s", ret_key->tenant);
    while (r == 0 && (word = strtok_r(NULL, blank, &rest)))
        r = take_word(ret_key, word, err);
    return r;
}

/* For as many keys as the text has lines. At once, since a list that grew would leave copies behind in memory
 * that was freed. */
static int make_list(struct bytes text, struct keys *keys, struct error *err)
{
    const char *at = text.data, *end = at + text.len;
    size_t lines = 1;
    while (lines < KEYS_MOST && at < end && (at = memchr(at, '\n', (size_t)(end - at)))) {
        at++;
        lines++;
    }
    keys->list = calloc(lines, sizeof *keys->list);
    return keys->list ? 0 : error_set(err, -ENOMEM, "out of memory");
}

/* The pool counts them by the name. */
static bool has_other_rates(const struct key *a, const struct key *b)
{
    return a->rpm != b->rpm || a->tpm != b->tpm || a->rpd != b->rpd || a->tpd != b->tpd;
}

static void set_id(const struct keys *keys, struct key *key)
{
    uint64_t n = 0, id[2];
    for (size_t i = 0; &keys->list[i] != key; i++)
        n += strcmp(keys->list[i].name, key->name) == 0;
    const struct hash128 hash = hash128(key->name, strlen(key->name), n);
    id[0] = htobe64(hash.high);
    id[1] = htobe64(hash.low);
    memcpy(key->id, id, sizeof key->id);
    key->is_another = n > 0;
}

static int add(struct keys *keys, const struct key *key, struct error *err)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->list[i].name, key->name) == 0 && has_other_rates(&keys->list[i], key))
            return error_set(err, -EINVAL, "rpm, tpm, rpd and tpd of %s differ from those of its other key",
                             key->name);
    if (keys_find(keys, (struct bytes){key->secret, key->secret_len}))
        return error_set(err, -EINVAL, "the key of %s is a duplicate", key->name);
    if (keys->n >= KEYS_MOST)
        return error_set(err, -EINVAL, "more than %d keys", KEYS_MOST);
    keys->list[keys->n] = *key;
    set_id(keys, &keys->list[keys->n++]);
    return 0;
}

/* Of a text whose lines are fewer than the list has room for, or as many. */
static int take_lines(struct bytes text, const char *name, struct keys *keys, struct error *err)
{
    const char *at = text.data, *end = at + text.len;
    char line[1024];
    struct key key;
    int r = 0;
    for (unsigned number = 1; r == 0 && at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        if (memchr(at, 0, len) || len >= sizeof line) {
            r = error_set(err, -EINVAL, "the line is too long or has a NUL character");
        } else {
            memcpy(line, at, len);
            line[len] = 0;
            if (line[strspn(line, " \t\r")] && line[strspn(line, " \t")] != '#') {
                r = take_line(line, &key, err);
                if (r == 0)
                    r = add(keys, &key, err);
            }
        }
        if (r < 0)
            error_prefix(err, r, "%s:%u", name, number);
        at = newline ? newline + 1 : end;
    }
    explicit_bzero(line, sizeof line);
    explicit_bzero(&key, sizeof key);
    return r;
}

int keys_parse(struct bytes text, const char *name, struct keys *ret_keys, struct error *err)
{
    struct keys keys = {0};
    int r = make_list(text, &keys, err);
    if (r == 0)
        r = take_lines(text, name, &keys, err);
    if (r == 0 && keys.n == 0)
        r = error_set(err, -EINVAL, "%s: no keys", name);
    if (r < 0)
        keys_deinit(&keys);
    else
        *ret_keys = keys;
    return r;
}

int keys_read(const char *path, struct keys *ret_keys, struct error *err)
{
    struct secret_file file;
    int r = secret_file_read(path, FILE_BYTES_MOST, &file, err);
    if (r < 0)
        return r;
    if (file.status.st_mode & S_IRWXO)
        r = error_set(err, -EPERM, "%s is readable by everyone; its mode must be 0600 or 0640", path);
    else
        r = keys_parse((struct bytes){file.text, file.len}, path, ret_keys, err);
    secret_file_deinit(&file);
    return r;
}

void keys_deinit(struct keys *keys)
{
    if (keys->list)
        explicit_bzero(keys->list, keys->n * sizeof *keys->list);
    free(keys->list);
    free(keys->uses);
    *keys = (struct keys){0};
}

void keys_share(struct keys *keys, struct budget *bodies, size_t one_body)
{
    const size_t half = bodies->most / 2, most = half > one_body ? half : one_body;
    for (size_t i = 0; i < keys->n; i++) {
        keys->list[i].bodies.most = most;
        keys->list[i].bodies.parent = bodies;
    }
}

static bool has_rates(const struct key *key)
{
    return key->rpm > 0 || key->tpm > 0 || key->rpd > 0 || key->tpd > 0;
}

/* The first key with the name of this one, which may be that. */
static size_t first_of_name(const struct keys *keys, size_t key)
{
    size_t i = 0;
    while (strcmp(keys->list[i].name, keys->list[key].name) != 0)
        i++;
    return i;
}

int keys_count_use(struct keys *keys)
{
    keys->uses = calloc(keys->n + 1, sizeof *keys->uses);
    if (!keys->uses)
        return -ENOMEM;
    for (size_t i = 0; i < keys->n; i++) {
        struct key *key = &keys->list[i];
        if (!has_rates(key))
            continue;
        key->use = &keys->uses[key->is_another ? first_of_name(keys, i) : i];
        key->use->limits[QUERN_RPM] = key->rpm;
        key->use->limits[QUERN_TPM] = key->tpm;
        key->use->limits[QUERN_RPD] = key->rpd;
        key->use->limits[QUERN_TPD] = key->tpd;
    }
    return 0;
}

struct key *keys_find(const struct keys *keys, struct bytes secret)
{
    char padded[KEY_BYTES_MOST + 1] = "";
    struct key *found = NULL;
    if (secret.len > KEY_BYTES_MOST)
        return NULL;
    if (secret.len > 0)
        memcpy(padded, secret.data, secret.len);
    for (size_t i = 0; i < keys->n; i++) {
        const volatile char *theirs = keys->list[i].secret;
        unsigned differs = keys->list[i].secret_len != secret.len;
        for (size_t j = 0; j < sizeof padded; j++)
            differs |= (unsigned)(unsigned char)(theirs[j] ^ padded[j]);
        if (!differs)
            found = &keys->list[i];
    }
    explicit_bzero(padded, sizeof padded);
    return found;
}

void key_set_rates(const struct key *key, struct quern_request *request)
{
    if (!key)
        return;
    request->rpm = key->rpm;
    request->tpm = key->tpm;
    request->rpd = key->rpd;
    request->tpd = key->tpd;
}

int key_check_priority(const struct key *key, bool open, int32_t priority, struct refusal *refusal)
{
    const int32_t most = key    ? (int32_t)key->priority
                         : open ? 0
                                : KEYS_PRIORITY,
                  least = key ? -most : -KEYS_PRIORITY;
    if (priority >= least && priority <= most)
        return 0;
    return refuse(refusal, 403, "priority_not_allowed", "priority",
                  "priority %d is not allowed: the %s is %d%s", -priority, priority > most ? "least" : "most",
                  priority > most ? -most : -least, key ? " with this key" : " without keys");
}

const char *key_salt(const struct key *key, bool shared, const char *salt,
                     char text[KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1])
{
    if (!key)
        return salt;
    snprintf(text, KEYS_SPACE_BYTES + KEYS_SALT_MOST + 1, "%s%s", shared ? "s" : key->space,
             salt ? salt : "");
    return text;
}

/* What is under way for the key, through all gateways. */
static int check_bounds(const struct key *key, uint64_t tokens, struct refusal *refusal)
{
    const uint64_t n = key->requests + key->elsewhere.requests, asked = key->tokens + key->elsewhere.tokens;
    const char *where = key->elsewhere.requests > 0 ? ", counting all gateways" : "";
    if (key->most_requests && n >= key->most_requests)
        return refuse(refusal, 429, "rate_limit_exceeded", NULL, "this key already has %s in progress%s",
                      amount_of(n, "request").text, where);
    if (key->most_tokens && tokens > key->most_tokens)
        return refuse(refusal, 400, "too_many_tokens", NULL,
                      "the request asks for %llu tokens; this key may have %llu at once",
                      (unsigned long long)tokens, (unsigned long long)key->most_tokens);
    if (key->most_tokens && (asked >= key->most_tokens || tokens > key->most_tokens - asked))
        return refuse(refusal, 429, "rate_limit_exceeded", NULL,
                      "this key already has %llu tokens requested%s; it may have %llu at once",
                      (unsigned long long)asked, where, (unsigned long long)key->most_tokens);
    return 0;
}

static uint64_t left_of(uint64_t most, uint64_t had)
{
    return most > had ? most - had : 0;
}

void key_share_room(struct key *key)
{
    struct elsewhere *e = &key->elsewhere;
    const uint64_t n = 1 + (uint64_t)e->gateways;
    e->share_requests = (int64_t)((left_of(key->most_requests, key->requests + e->requests) + n - 1) / n);
    e->share_tokens = (int64_t)((left_of(key->most_tokens, key->tokens + e->tokens) + n - 1) / n);
    e->taken_requests = e->taken_tokens = 0;
}

/* Others may take of the same room at the moment. */
static int check_share(const struct key *key, uint64_t tokens, struct refusal *refusal)
{
    const struct elsewhere *e = &key->elsewhere;
    if (e->gateways == 0 || e->taken_requests <= 0)
        return 0;
    if ((key->most_requests == 0 || e->taken_requests < e->share_requests) &&
        (key->most_tokens == 0 || (int64_t)tokens <= e->share_tokens - e->taken_tokens))
        return 0;
    return refuse(refusal, 429, "rate_limit_exceeded", NULL,
                  "this key has reached its limits for the moment, counting all gateways");
}

int key_take(struct key *key, uint64_t tokens, struct refusal *refusal)
{
    if (!key)
        return 0;
    const uint64_t now = clock_ns();
    key->asked_ns = now;
    if (check_bounds(key, tokens, refusal) != 0 || check_share(key, tokens, refusal) != 0) {
        refusal->retry_after_s = refusal->status == 429;
        return REFUSED;
    }
    if (key->use) {
        if (use_check(key->use, now, refusal) != 0)
            return REFUSED;
        use_count(key->use, 1, 0, now);
    }
    key->requests++;
    key->tokens += tokens;
    key->elsewhere.taken_requests++;
    key->elsewhere.taken_tokens += (int64_t)tokens;
    return 0;
}

void key_used_tokens(struct key *key, uint64_t tokens)
{
    if (key && key->use)
        use_count(key->use, 0, (double)tokens, clock_ns());
}

void key_not_used(struct key *key)
{
    if (key && key->use)
        use_count(key->use, -1, 0, clock_ns());
}

void key_release(struct key *key, uint64_t tokens)
{
    if (!key)
        return;
    key->requests--;
    key->tokens -= tokens;
    key->elsewhere.taken_requests--;
    key->elsewhere.taken_tokens -= (int64_t)tokens;
}

static bool is_share(size_t had, size_t more, size_t all, size_t most)
{
    return all + more <= most && had + more <= most - all - more;
}

int keys_ask(struct keys *keys, struct key *key, size_t bytes, struct refusal *refusal)
{
    struct asked *all = &keys->asked;
    if (!key)
        return 0;
    if (!is_share(key->asked.n, 1, all->n, KEYS_MOST_ASKED) ||
        (key->asked.n > 0 && !is_share(key->asked.bytes, bytes, all->bytes, KEYS_MOST_ASKED_BYTES))) {
        refuse(refusal, 429, "rate_limit_exceeded", NULL,
               "this key already has %s, of %s, waiting for an answer",
               amount_of(key->asked.n, "question").text, amount_of_bytes(key->asked.bytes).text);
        refusal->retry_after_s = 1;
        return REFUSED;
    }
    key->asked.n++;
    key->asked.bytes += bytes;
    all->n++;
    all->bytes += bytes;
    return 0;
}

void keys_answered(struct keys *keys, struct key *key, size_t bytes)
{
    if (!key)
        return;
    key->asked.n--;
    key->asked.bytes -= bytes;
    keys->asked.n--;
    keys->asked.bytes -= bytes;
}
