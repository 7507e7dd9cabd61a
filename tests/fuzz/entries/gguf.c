/* SPDX-License-Identifier: MIT */
/* A GGUF file, whatever its bytes, is parsed or refused with a reason, and everything that a parsed file
 * points to lies inside the bytes. What parses is opened as a model with its tokenizer too. Memory stays in
 * proportion to the input: the driver's and libFuzzer's limits see to that. For libFuzzer the sources are
 * gguf, text/tokenizer, text/template, model and common. */

#include "common/utf8.h"
#include "tests/fuzz/driver.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "gguf/gguf_digest.h"
#include "gguf/gguf_values.h"

static uint64_t sum; /* keeps reads from being optimized away */

static void read_all(struct bytes bytes)
{
    for (size_t i = 0; i < bytes.len; i++)
        sum += ((const uint8_t *)bytes.data)[i];
}

static void walk_array(const struct gguf_value *value)
{
    size_t cursor = 0;
    for (uint64_t i = 0; i < value->array.n; i++) {
        if (value->array.type == GGUF_STRING)
            read_all(gguf_array_next_string(value, &cursor));
        else if (value->array.type == GGUF_F32 || value->array.type == GGUF_F64)
            sum += gguf_array_real(value, i) > 0;
        else
            sum += (uint64_t)gguf_array_int(value, i);
    }
    if (value->array.type == GGUF_STRING && cursor != value->array.raw.len)
        abort();
}

static void walk(const struct gguf *gguf)
{
    char name[32];
    uint8_t digest[16];
    for (size_t i = 0; i < gguf_n_pairs(gguf); i++) {
        const struct gguf_pair *pair = gguf_pair_at(gguf, i);
        read_all(pair->key);
        utf8_printable(pair->key, sizeof name, name);
        if (pair->value.type == GGUF_STRING)
            read_all(pair->value.string);
        else if (pair->value.type == GGUF_ARRAY)
            walk_array(&pair->value);
    }
    for (size_t i = 0; i < gguf_n_tensors(gguf); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(gguf, i);
        read_all(tensor->name);
        read_all((struct bytes){tensor->data, tensor->size});
    }
    gguf_digest(gguf, 1, NULL, NULL, digest);
}

/* A refusal has a code and a reason on one line. */
static void check_refusal(int r, const struct error *err)
{
    if (r == -ENOMEM)
        return;
    if (r >= 0 || !err->text[0] || strchr(err->text, '\n'))
        abort();
}

static void open_model(struct gguf *gguf)
{
    struct model *model;
    struct error err = {0};
    struct ids ids = {0};
    int r = model_take_gguf(gguf, "fuzz", true, &model, &err);
    if (r != 0) {
        check_refusal(r, &err);
        return;
    }
    tokenizer_encode(model->tokenizer, BYTES_LITERAL("Grind, mill <s> \xe2\x96\x81"), TOKENIZER_ADD_SPECIAL,
                     &ids);
    for (size_t i = 0; i < ids.len; i++)
        read_all(tokenizer_piece(model->tokenizer, ids.data[i], i == 0));
    ids_deinit(&ids);
    model_free(model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct gguf *gguf;
    struct error err = {0};
    int r = gguf_parse(data, len, &gguf, &err);
    if (r != 0) {
        check_refusal(r, &err);
        return 0;
    }
    walk(gguf);
    open_model(gguf);
    return 0;
}
