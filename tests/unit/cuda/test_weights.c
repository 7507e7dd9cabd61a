/* SPDX-License-Identifier: MIT */
/* Weights on a device: workers of one machine read the file once. */

#include "cuda/backend.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/backend/weight_store.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define N_PROMPT 40
#define N_VOCAB  405
#define PAGE     ((uintptr_t)4096)

static const uint8_t digest[16] = "of the file";
static struct model *model;

static int open_backend(struct weight_store *store, struct backend **ret_backend)
{
    const struct backend_config config = {
        .model = model, .n_slots = 3, .n_context = 96, .n_blocks = 6, .max_rows = 64, .weights = store};
    return quern_backend.open(&config, ret_backend, NULL);
}

static void ask(struct backend *backend, float ret_logits[N_VOCAB])
{
    static const uint32_t blocks[] = {3, 5};
    static const struct backend_slot slot = {.sampling = {SAMPLING_OFF}, .end_position = 90};
    const struct backend_result *results;
    int32_t prompt[N_PROMPT];
    uint64_t ticket;
    int r;
    for (int32_t i = 0; i < N_PROMPT; i++)
        prompt[i] = (7 + i * 31) % 400;
    const struct backend_row_set set = {.ids = prompt,
                                        .n_ids = N_PROMPT,
                                        .blocks = {{blocks, 2, 0}},
                                        .output = BACKEND_LOGITS_LAST,
                                        .logits = ret_logits};
    ck_assert_int_eq(quern_backend.slot_open(backend, 0, &slot), 0);
    ck_assert_int_eq(quern_backend.submit(backend, &(struct backend_step){&set, 1}, &ticket), 0);
    do
        r = quern_backend.poll(backend, ticket, 100, &results, NULL);
    while (r == -EAGAIN);
    ck_assert_int_eq(r, 0);
}

static struct weight_store_file file_of_test(void)
{
    struct weight_store_file file = {.settled = true, .packing = quern_backend.weight_packing()};
    const pid_t who = getpid();
    memcpy(file.key, &who, sizeof who);
    return file;
}

/* In a process of its own, which is killed when it is not needed any more. Says whether all went well. */
static void be_first_worker(const struct weight_store_file *file, int said)
{
    struct weight_store *store;
    struct backend *backend;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char ok = weight_store_open(file, &store, NULL) == 0;
    if (ok) {
        weight_store_know(store, digest);
        ok = open_backend(store, &backend) == 0 && !weight_store_is_found(store) &&
             weight_store_publish(store, NULL) == 0;
    }
    if (write(said, &ok, 1) == 1)
        for (;;)
            pause();
    _exit(1);
}

static pid_t start_first_worker(const struct weight_store_file *file)
{
    int said[2];
    char ok = 0;
    ck_assert_int_eq(pipe(said), 0);
    pid_t pid = fork_child();
    if (pid == 0)
        be_first_worker(file, said[1]);
    close(said[1]);
    ck_assert_int_eq(read(said[0], &ok, 1), 1);
    ck_assert_int_eq(ok, 1);
    close(said[0]);
    return pid;
}

/* Whoever reads a byte of the tensors from here on is killed; but for those that share a page with others. */
static size_t close_file(void)
{
    uintptr_t first = UINTPTR_MAX, end = 0;
    for (size_t i = 0; i < gguf_n_tensors(model->gguf); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(model->gguf, i);
        const uintptr_t at = (uintptr_t)tensor->data;
        first = at < first ? at : first;
        end = at + tensor->size > end ? at + tensor->size : end;
    }
    first = (first + PAGE - 1) / PAGE * PAGE;
    end = end / PAGE * PAGE;
    ck_assert_uint_lt(first, end);
    ck_assert_int_eq(mprotect((void *)first, end - first, PROT_NONE), 0);
    return end - first;
}

START_TEST(the_second_worker_reads_no_weight_of_the_file)
{
    static float expected[N_VOCAB], logits[N_VOCAB];
    static const char *const types[] = {"Q8_0", "Q4_K_M", "F32"};
    struct weight_store *store;
    struct backend *backend;
    model = make_model(&small_shape, types[_i]);
    const struct weight_store_file file = file_of_test();
    pid_t first = start_first_worker(&file); /* before there is a device in this process */
    ck_assert_int_eq(open_backend(NULL, &backend), 0);
    ask(backend, expected);
    quern_backend.close(backend);
    ck_assert_int_eq(weight_store_open(&file, &store, NULL), 0);
    ck_assert_mem_eq(weight_store_digest(store), digest, sizeof digest);
    weight_store_know(store, digest);
    ck_assert_uint_gt(close_file(), 64 << 10);
    ck_assert_int_eq(open_backend(store, &backend), 0);
    ck_assert(weight_store_is_found(store));
    ask(backend, logits);
    ck_assert_mem_eq(logits, expected, sizeof expected);
    quern_backend.close(backend);
    weight_store_free(store);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    model_free(model);
}
END_TEST

START_TEST(who_finds_nothing_makes_it_and_computes_the_same)
{
    static float expected[N_VOCAB], logits[N_VOCAB];
    struct weight_store *store;
    struct backend *backend;
    model = make_model(&small_shape, "Q8_0");
    const struct weight_store_file file = file_of_test();
    ck_assert_int_eq(open_backend(NULL, &backend), 0);
    ask(backend, expected);
    quern_backend.close(backend);
    ck_assert_int_eq(weight_store_open(&file, &store, NULL), 0);
    weight_store_know(store, digest);
    ck_assert_int_eq(open_backend(store, &backend), 0);
    ck_assert(!weight_store_is_found(store));
    ck_assert_uint_gt(weight_store_bytes(store), 64 << 10);
    ck_assert_int_eq(weight_store_publish(store, NULL), 0);
    ask(backend, logits);
    ck_assert_mem_eq(logits, expected, sizeof expected);
    quern_backend.close(backend);
    weight_store_free(store);
    model_free(model);
}
END_TEST

/* Frequencies are kept with the weights. A model whose factors hang on the context has two sets of them. */
START_TEST(frequencies_of_another_context_are_not_taken)
{
    struct weight_store *store;
    struct backend *backend;
    model = make_model(&small_shape, "Q8_0");
    const struct weight_store_file file = file_of_test();
    pid_t first = start_first_worker(&file);
    struct model_tensor *tensors = model->tensors;
    ck_assert_ptr_nonnull(tensors[TENSOR_ROTARY_FACTORS].weight);
    tensors[TENSOR_ROTARY_SHORT] = tensors[TENSOR_ROTARY_LONG] = tensors[TENSOR_ROTARY_FACTORS];
    model->params.rope_trained_context = 1;
    ck_assert_int_eq(weight_store_open(&file, &store, NULL), 0);
    weight_store_know(store, digest);
    ck_assert_int_eq(open_backend(store, &backend), 0);
    ck_assert(!weight_store_is_found(store));
    quern_backend.close(backend);
    weight_store_free(store);
    kill(first, SIGKILL);
    waitpid(first, NULL, 0);
    model_free(model);
}
END_TEST

/* What the matrices and vectors of a model take as they lie on a device, and how many they are. */
static size_t bytes_of_tensors(uint32_t *ret_n)
{
    size_t bytes = 0;
    *ret_n = 0;
    for (size_t i = 0; i < gguf_n_tensors(model->gguf); i++, ++*ret_n)
        bytes += gguf_tensor_at(model->gguf, i)->size;
    return bytes;
}

/* A driver gives whole pages of 2 MiB: of each tensor's own, most would be waste. */
START_TEST(many_small_tensors_waste_no_memory)
{
    static const struct synth_shape deep = {.name = "deep",
                                            .n_vocab = 400,
                                            .n_context = 128,
                                            .n_embd = 256,
                                            .n_layers = 80,
                                            .n_heads = 4,
                                            .n_kv_heads = 4,
                                            .head_dim = 64,
                                            .n_ff = 256,
                                            .norm_epsilon = 1e-5f,
                                            .rope_base = 10000};
    uint32_t n;
    struct backend *backend;
    struct backend_usage usage;
    struct backend_info info;
    model = make_model(&deep, "Q8_0");
    const size_t tensors = bytes_of_tensors(&n);
    ck_assert_uint_gt(n * DEVICE_GRANULE, (size_t)1 << 30); /* an allocation each */
    setenv("QUERN_EMU_BYTES", "134217728", 1);
    ck_assert_int_eq(open_backend(NULL, &backend), 0);
    unsetenv("QUERN_EMU_BYTES");
    quern_backend.usage(backend, &usage);
    quern_backend.info(backend, &info);
    ck_assert_msg(usage.weights <= tensors + tensors / 100 + DEVICE_GRANULE, "%zu bytes for tensors of %zu",
                  (size_t)usage.weights, tensors);
    /* What is said is what is gone. */
    ck_assert_uint_eq(info.memory_bytes, device_counts(backend_device(backend)).bytes);
    ck_assert_uint_eq(usage.device_free, usage.device_total - info.memory_bytes);
    ck_assert_uint_eq(usage.weights + usage.workspace + backend_kv_bytes(&info), info.memory_bytes);
    quern_backend.close(backend);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, the_second_worker_reads_no_weight_of_the_file, 0, 3);
    tcase_add_test(tests, who_finds_nothing_makes_it_and_computes_the_same);
    tcase_add_test(tests, frequencies_of_another_context_are_not_taken);
    tcase_add_test(tests, many_small_tensors_waste_no_memory);
}

int main(void)
{
    /* The check of a device computes with the file's weights too, which a worker that found them must not. */
    setenv("QUERN_UNCHECKED", "1", 1);
    return run_tests("cuda weights", add);
}
