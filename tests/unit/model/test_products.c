/* SPDX-License-Identifier: MIT */
/* Hyperparameters whose products leave 32 bits, in files without weights. */

#include "model/model.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* Head counts and lengths whose product is 2^32 and a little: in 32 bits it is small, and buffers were too.
 * The tensors to it are of the shapes that 64 bits ask for, in memory that was never written. */
struct hostile {
    uint8_t *file;
    size_t size, mapped;
};

static uint8_t *put(uint8_t *to, const void *bytes, size_t n)
{
    memcpy(to, bytes, n);
    return to + n;
}

/* A tensor behind the ones before, which end at *offset. */
static uint8_t *put_tensor(uint8_t *to, uint64_t *offset, const char *name, uint64_t columns, uint64_t rows)
{
    uint64_t len = strlen(name), at = *offset;
    uint32_t n_dims = rows ? 2 : 1, format = rows ? FORMAT_F16 : FORMAT_F32;
    to = put(to, &len, sizeof len);
    to = put(to, name, len);
    to = put(to, &n_dims, sizeof n_dims);
    to = put(to, &columns, sizeof columns);
    if (rows)
        to = put(to, &rows, sizeof rows);
    to = put(to, &format, sizeof format);
    *offset += (columns * (rows ? rows * 2 : 4) + 31) / 32 * 32;
    return put(to, &at, sizeof at);
}

static uint8_t *put_key(uint8_t *to, const char *key, uint32_t type)
{
    uint64_t len = strlen(key);
    to = put(to, &len, sizeof len);
    to = put(to, key, len);
    return put(to, &type, sizeof type);
}

static struct hostile make_hostile(uint32_t n_heads, uint32_t head_dim)
{
    static const struct {
        const char *key;
        uint32_t value;
    } counts[] = {{"llama.context_length", 32},
                  {"llama.embedding_length", 1},
                  {"llama.block_count", 1},
                  {"llama.feed_forward_length", 1},
                  {"llama.attention.head_count_kv", 1}};
    uint64_t queries = (uint64_t)n_heads * head_dim, n_tensors = 11, n_pairs = 9, len = 5, offset = 0;
    struct hostile h = {.mapped = queries * 4 + (size_t)head_dim * 4 + (1 << 16)};
    h.file = mmap(NULL, h.mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ck_assert_ptr_ne(h.file, MAP_FAILED);
    ck_assert_int_eq(mprotect(h.file, 1 << 16, PROT_READ | PROT_WRITE), 0); /* the head; tensors are zeroes */
    const uint32_t version = 3;
    const float epsilon = 1e-5f;
    uint8_t *to = put(h.file, "GGUF", 4);
    to = put(to, &version, sizeof version);
    to = put(to, &n_tensors, sizeof n_tensors);
    to = put(to, &n_pairs, sizeof n_pairs);
    to = put(put(put_key(to, "general.architecture", GGUF_STRING), &len, sizeof len), "llama", 5);
    to = put(put_key(to, "llama.attention.head_count", GGUF_U32), &n_heads, 4);
    to = put(put_key(to, "llama.attention.key_length", GGUF_U32), &head_dim, 4);
    for (size_t i = 0; i < 5; i++)
        to = put(put_key(to, counts[i].key, GGUF_U32), &counts[i].value, 4);
    to = put(put_key(to, "llama.attention.layer_norm_rms_epsilon", GGUF_F32), &epsilon, 4);
    to = put_tensor(to, &offset, "token_embd.weight", 1, 8);
    to = put_tensor(to, &offset, "output_norm.weight", 1, 0);
    to = put_tensor(to, &offset, "blk.0.attn_norm.weight", 1, 0);
    to = put_tensor(to, &offset, "blk.0.attn_q.weight", 1, queries);
    to = put_tensor(to, &offset, "blk.0.attn_k.weight", 1, head_dim);
    to = put_tensor(to, &offset, "blk.0.attn_v.weight", 1, head_dim);
    to = put_tensor(to, &offset, "blk.0.attn_output.weight", queries, 1);
    to = put_tensor(to, &offset, "blk.0.ffn_norm.weight", 1, 0);
    to = put_tensor(to, &offset, "blk.0.ffn_gate.weight", 1, 1);
    to = put_tensor(to, &offset, "blk.0.ffn_up.weight", 1, 1);
    put_tensor(to, &offset, "blk.0.ffn_down.weight", 1, 1);
    h.size = h.mapped;
    return h;
}

static int open_hostile(uint32_t n_heads, uint32_t head_dim, struct error *err)
{
    struct hostile h = make_hostile(n_heads, head_dim);
    struct gguf *gguf;
    struct model *model = NULL;
    ck_assert_msg(gguf_parse(h.file, h.size, &gguf, err) == 0, "%s", err->text);
    int r = model_take_gguf(gguf, "hostile", false, &model, err);
    model_free(model);
    munmap(h.file, h.mapped);
    return r;
}

START_TEST(no_product_of_hyperparameters_leaves_32_bits)
{
    struct error err = {0};
    ck_assert_msg(open_hostile(4, 16, &err) == 0, "%s", err.text);
    ck_assert_int_eq(open_hostile(65537, 65536, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "65537 heads of 65536"), "%s", err.text);
    ck_assert_int_eq(open_hostile(65536, 2, &err), 0);
    ck_assert_int_eq(open_hostile(65537, 2, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "number of heads 65537 is out of range 1..65536"), "%s", err.text);
    ck_assert_int_eq(open_hostile(1 << 12, (1 << 12) + 2, &err), -EINVAL);
    ck_assert_msg(strstr(err.text, "4096 heads of 4098"), "%s", err.text);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, no_product_of_hyperparameters_leaves_32_bits);
}

int main(void)
{
    return run_tests("products of hyperparameters", add);
}
