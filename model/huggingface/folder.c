/* SPDX-License-Identifier: MIT */
/* A folder → tensors and metadata.
 *
 * All files are mapped and stay so; the texts among them are read once. Of SafeTensors files only the headers
 * are read: every tensor gets its name, shape, format and address, and what is not used as it lies is made
 * when it is needed, by whom the model keeps for that (sources.h). Factors of rotary frequencies, which
 * config.json says, are all that is computed here. */

#include "model/huggingface/folder.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/amount.h"
#include "common/utf8.h"
#include "model/huggingface/config/config.h"
#include "model/huggingface/json_values.h"
#include "model/huggingface/pooling.h"
#include "model/huggingface/sources.h"
#include "model/huggingface/tokens.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_writer.h"

struct folder {
    const char *path;
    struct gguf *gguf;
    struct gguf_writer *writer;
    struct config config;
    struct sources *sources; /* NULL once the gguf has them */
    struct error *err;
};

bool huggingface_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Maps a file of the folder. -ENOENT, without a reason, when it is not there. */
static int map(void *arg, const char *name, struct bytes *ret_bytes)
{
    struct folder *folder = arg;
    char path[4096];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder->path, name) >= sizeof path)
        return error_set(folder->err, -ENAMETOOLONG, "%s: the path is too long", name);
    if (stat(path, &st) < 0 && errno == ENOENT)
        return -ENOENT;
    int r = gguf_add_file(folder->gguf, path, "JSON or SafeTensors", ret_bytes, folder->err);
    return r < 0 ? error_prefix(folder->err, r, "%s", name) : 0;
}

static int map_needed(struct folder *folder, const char *name, struct bytes *ret_bytes)
{
    int r = map(folder, name, ret_bytes);
    return r == -ENOENT ? error_set(folder->err, r, "%s is missing", name) : r;
}

static int map_optional(struct folder *folder, const char *name, struct bytes *ret_bytes)
{
    int r = map(folder, name, ret_bytes);
    return r == -ENOENT ? 0 : r;
}

/* ---- metadata ---- */

static int read_config(struct folder *folder)
{
    struct bytes text;
    int r = map_needed(folder, "config.json", &text);
    if (r < 0)
        return r;
    r = config_parse(text, &folder->config, folder->err);
    if (r < 0)
        return error_prefix(folder->err, r, "config.json");
    size_t len = strlen(folder->path);
    while (len > 1 && folder->path[len - 1] == '/')
        len--;
    const char *slash = memrchr(folder->path, '/', len);
    char name[128];
    const char *start = slash ? slash + 1 : folder->path;
    utf8_printable((struct bytes){start, (size_t)(folder->path + len - start)}, sizeof name, name);
    return config_write(&folder->config, name, folder->writer);
}

static int read_pooling(struct folder *folder)
{
    struct bytes text = {0};
    uint32_t pooling;
    char key[64];
    int r = map_optional(folder, HUGGINGFACE_POOLING, &text);
    if (r < 0 || !text.data)
        return r;
    r = pooling_parse(text, &pooling, folder->err);
    if (r < 0)
        return error_prefix(folder->err, r, HUGGINGFACE_POOLING);
    snprintf(key, sizeof key, "%s.pooling_type", folder->config.architecture);
    return gguf_writer_u32(folder->writer, key, pooling);
}

static int read_tokens(struct folder *folder)
{
    struct tokens_files files = {.gemma4 = folder->config.family->uses & USES_RANKED_MERGES};
    int r = map_needed(folder, "tokenizer.json", &files.tokenizer);
    if (r == 0)
        r = map_optional(folder, "tokenizer_config.json", &files.config);
    if (r == 0)
        r = map_optional(folder, "generation_config.json", &files.generation);
    if (r == 0)
        r = map_optional(folder, "chat_template.jinja", &files.chat);
    return r < 0 ? r : tokens_write(&files, folder->writer, folder->err);
}

/* ---- tensors ---- */

static int announce_factors(const struct folder *folder, enum config_factors list)
{
    const uint64_t n = config_n_factors(&folder->config, list);
    return n == 0
               ? 0
               : gguf_writer_tensor(folder->writer, config_factors_name(list), 1, &n, FORMAT_F32, NULL, NULL);
}

static int read_tensors(struct folder *folder)
{
    folder->sources = calloc(1, sizeof *folder->sources);
    if (!folder->sources)
        return -ENOMEM;
    int r = sources_read(folder->path, &folder->config, map, folder, folder->sources, folder->err);
    if (r == 0)
        r = sources_announce(folder->sources, folder->writer);
    for (enum config_factors list = 0; list < CONFIG_FACTOR_LISTS && r == 0; list++)
        r = announce_factors(folder, list);
    return r;
}

static void free_sources(void *arg)
{
    sources_deinit(arg);
    free(arg);
}

/* The address of every tensor, in the order of announcement. The gguf takes their sources over. */
static int place_tensors(struct folder *folder, const void **data)
{
    struct sources *sources = folder->sources;
    const struct gguf_maker maker = {.make = sources_make, .free = free_sources, .arg = sources};
    void *memory;
    folder->sources = NULL;
    int r = gguf_add_maker(folder->gguf, &maker, sources_made_bytes(sources), &memory);
    if (r < 0)
        return r;
    sources_places(sources, memory, data);
    data += sources->n_tensors;
    for (enum config_factors list = 0; list < CONFIG_FACTOR_LISTS && r == 0; list++) {
        const uint32_t n = config_n_factors(&folder->config, list);
        if (n == 0)
            continue;
        r = gguf_add_memory(folder->gguf, n * sizeof(float), &memory);
        if (r == 0)
            config_factors(&folder->config, list, memory);
        *data++ = memory;
    }
    return r;
}

/* ---- the whole ---- */

static int write_note(const struct folder *folder)
{
    const struct shards *shards = &folder->sources->shards;
    const size_t n_fp8 = folder->sources->n_fp8;
    char note[256] = "";
    size_t n = 0;
    if (shards->n_left_out > 0)
        n = (size_t)snprintf(note, sizeof note, "only the text part is loaded, without %s of %s",
                             amount_of(shards->n_left_out, "tensor").text, shards->left_out);
    if (n_fp8 > 0 && n < sizeof note)
        snprintf(note + n, sizeof note - n, "%sconverted from FP8 (E4M3) to BF16: %s", n ? "; " : "",
                 amount_of(n_fp8, "weight").text);
    return note[0] ? gguf_writer_string(folder->writer, HUGGINGFACE_NOTE, note) : 0;
}

static int assemble(struct folder *folder)
{
    const void **data = calloc(folder->sources->n_tensors + CONFIG_FACTOR_LISTS, sizeof *data);
    int r = data ? place_tensors(folder, data) : -ENOMEM;
    if (r == 0)
        r = gguf_assemble(folder->gguf, folder->writer, data, folder->err);
    free(data);
    return r;
}

static void let_go(struct folder *folder)
{
    if (folder->sources)
        free_sources(folder->sources);
    gguf_writer_free(folder->writer);
}

int huggingface_open(const char *path, struct gguf **ret_gguf, struct error *err)
{
    struct folder folder = {.path = path, .err = err};
    int r = gguf_new(&folder.gguf);
    if (err)
        err->text[0] = '\0';
    if (r == 0)
        r = gguf_writer_new(&folder.writer);
    if (r == 0)
        r = read_config(&folder);
    if (r == 0)
        r = read_pooling(&folder);
    if (r == 0)
        r = read_tokens(&folder);
    if (r == 0)
        r = read_tensors(&folder);
    if (r == 0)
        r = write_note(&folder);
    if (r == 0)
        r = assemble(&folder);
    let_go(&folder);
    if (r < 0) {
        gguf_free(folder.gguf);
        return r == -ENOMEM ? error_set(err, r, "%s: out of memory", path) : error_prefix(err, r, "%s", path);
    }
    *ret_gguf = folder.gguf;
    return 0;
}
