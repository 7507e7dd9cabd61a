/* SPDX-License-Identifier: MIT */
/* What a folder with SafeTensors holds, whatever its bytes, is parsed or refused with a reason. The first
 * byte picks the file: a SafeTensors file, whose tensors must lie inside it; config.json, whose numbers must
 * be such that names and shapes can be made of them, and the same bytes as 1_Pooling/config.json;
 * tokenizer.json, whose translation must be metadata that parses. For libFuzzer the sources are
 * model/huggingface, gguf, text/tokenizer and common. */

#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/huggingface/config/config.h"
#include "model/huggingface/names.h"
#include "model/huggingface/pooling.h"
#include "model/huggingface/safetensors.h"
#include "model/huggingface/tokens.h"
#include "text/tokenizer/tokenizer.h"
#include "gguf/gguf_assemble.h"
#include "gguf/gguf_writer.h"

static uint64_t sum; /* keeps reads from being optimized away */

static void check_refusal(int r, const struct error *err)
{
    if (r != -ENOMEM && (r >= 0 || !err->text[0] || strchr(err->text, '\n')))
        abort();
}

static void try_tensors(struct bytes bytes)
{
    struct safetensors file;
    struct error err = {0};
    int r = safetensors_parse(bytes, &file, &err);
    if (r != 0) {
        check_refusal(r, &err);
        return;
    }
    for (size_t i = 0; i < file.n; i++)
        for (size_t b = 0; b < file.tensors[i].size; b++)
            sum += file.tensors[i].data[b];
    safetensors_deinit(&file);
}

/* Metadata as a model that has nothing else. */
static void assemble(struct gguf_writer *writer)
{
    struct gguf *gguf;
    struct tokenizer *tokenizer;
    struct error err = {0};
    struct ids ids = {0};
    if (gguf_new(&gguf) < 0)
        return;
    int r = gguf_assemble(gguf, writer, NULL, &err);
    if (r < 0)
        check_refusal(r, &err);
    r = r < 0 ? r : tokenizer_new(gguf, &tokenizer, &err);
    if (r == 0) {
        tokenizer_encode(tokenizer, BYTES_LITERAL("Grind, mill \xe2\x96\x81"), TOKENIZER_ADD_SPECIAL, &ids);
        tokenizer_free(tokenizer);
    }
    ids_deinit(&ids);
    gguf_free(gguf);
}

static void try_factors(const struct config *config, enum config_factors list)
{
    const uint32_t n = config_n_factors(config, list);
    float *factors = calloc(n + 1, sizeof *factors);
    if (!factors)
        return;
    config_factors(config, list, factors);
    for (uint32_t i = 0; i < n; i++)
        if (!(factors[i] >= 0))
            abort();
    free(factors);
}

static void try_config(struct bytes bytes, struct gguf_writer *writer)
{
    struct config config;
    struct place places[NAMES_MOST_PLACES];
    struct names_walk walk = {0};
    struct error err = {0};
    char name[NAMES_SIZE];
    uint32_t n = 0;
    int r = config_parse(bytes, &config, &err);
    if (r != 0) {
        check_refusal(r, &err);
        return;
    }
    for (uint64_t i = 0; i < 40 && names_next(&config, &walk, name); i++) {
        if (names_places(&config, name, places, &n, &err) != 0 || n == 0)
            abort(); /* what is needed has a place */
        for (uint32_t p = 0; p < n; p++)
            if (places[p].name[0] == '\0')
                abort();
    }
    for (enum config_factors list = 0; list < CONFIG_FACTOR_LISTS; list++)
        try_factors(&config, list);
    if (config_write(&config, "fuzz", writer) == 0)
        assemble(writer);
}

static void try_pooling(struct bytes bytes)
{
    struct error err = {0};
    uint32_t type = 0;
    int r = pooling_parse(bytes, &type, &err);
    if (r != 0)
        check_refusal(r, &err);
    else if (type < 1 || type > 3)
        abort();
}

static void try_tokens(struct bytes bytes, bool gemma4, struct gguf_writer *writer)
{
    const struct tokens_files files = {
        .gemma4 = gemma4, .tokenizer = bytes, .generation = BYTES_LITERAL("{\"eos_token_id\":0}")};
    struct error err = {0};
    int r = tokens_write(&files, writer, &err);
    if (r != 0)
        check_refusal(r, &err);
    else
        assemble(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct gguf_writer *writer;
    if (len == 0 || gguf_writer_new(&writer) < 0)
        return 0;
    const struct bytes rest = {data + 1, len - 1};
    switch (data[0] % 3) {
    case 0:
        try_tensors(rest);
        break;
    case 1:
        try_config(rest, writer);
        try_pooling(rest);
        break;
    default:
        try_tokens(rest, data[0] == '5', writer); /* of any family, or of Gemma 4 */
    }
    gguf_writer_free(writer);
    return 0;
}
