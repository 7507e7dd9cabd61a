/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_FAMILIES_H
#define MODEL_HUGGINGFACE_FAMILIES_H

/* Model types of Hugging Face's transformers: what each is in GGUF, what its class fills in, which values of
 * config.json are supported, and what its tensors are called. Data only; config.h and names.h read it.
 *
 * To add one whose architecture Quern has: a row in families.c, with tables of names from family_names.c. */

#include <stdbool.h>
#include <stdint.h>

/* What a dimension of a tensor counts; names.c has the number and the key for each. */
enum extent {
    NONE, /* of rows: a vector */
    VOCAB,
    POSITIONS,
    EMBD,
    FF,
    TWO_FF,
    QUERIES,
    QUERIES_AND_GATES,
    KEYS,
    ALL_QKV,
    HEAD,
    HEADS,
    ONE,
    LAYER_EMBD,     /* of one layer */
    ALL_LAYER_EMBD, /* of all layers */
    EXPERTS,
    EXPERT_FF,
    TWO_EXPERT_FF,
    SHARED_FF,
    TAPS,           /* of a convolution */
    DELTA_CHANNELS, /* queries, keys and values of a delta net */
    DELTA_VALUES,
    DELTA_ALL, /* queries, keys, values and gates */
    DELTA_VALUE,
    DELTA_HEADS,
    TWO_DELTA_HEADS,
    EXTENTS
};

/* How a tensor becomes GGUF's. */
enum how {
    COPIED,
    ONE_ADDED,   /* to each number */
    DECAY,       /* −exp of each number; heads as in VALUE_HEADS */
    TURNED,      /* rows and columns exchanged */
    FIRST_HALF,  /* of the rows of each matrix */
    SECOND_HALF, /* the others */
    EVEN_ROWS, /* of each matrix; its rows may stand as columns, and blocks of MXFP4 beside their exponents */
    ODD_ROWS,  /* the others */
    VALUE_HEADS,  /* the last rows, of value heads, take turns over the key heads; those before stay */
    VALUE_COLUMNS /* the same of columns */
};

enum of { OF_MODEL, OF_LAYER, OF_ATTENDING, OF_RECURRENT };

/* When a tensor must be there. */
enum need {
    ALWAYS,
    UNTIED,
    FUSED_EXPERTS,    /* where all experts of a layer are in one tensor */
    SEPARATE_EXPERTS, /* where each has its own */
    MXFP4_EXPERTS,
    PLAIN_EXPERTS,
    SHARED_EXPERT,
    BESIDE_EXPERTS,   /* where layers have experts besides a dense feed-forward */
    OWN_KEYS,         /* in layers that attend to keys of their own */
    OWN_VALUES,       /* in those whose values are not their keys */
    LAYER_EMBEDDINGS, /* where tokens have one for each layer */
    NEVER
};

enum bias { BIAS_NONE, BIAS_MUST, BIAS_OF_ATTENTION, BIAS_OF_MLP }; /* the latter as config.json says */

enum shape {
    AS_SAID,        /* rows, columns */
    STACKED,        /* the same for each expert, in one tensor */
    STACKED_TURNED, /* and rows and columns exchanged */
    STACKED_BLOCKS, /* rows, blocks of 32 columns, 16 bytes */
    MIDDLE_ONE,     /* rows, 1, columns */
    ROW_OF_ONE      /* 1, columns: a vector */
};

struct name_row {
    const char *theirs; /* before ".weight" and ".bias"; "*" stands for an expert's number */
    const char *ours;   /* the same; NULL: left out */
    enum extent rows, columns;
    enum of of;
    enum need need;
    enum bias bias;
    enum how how;
    enum shape shape;
    bool bare; /* nothing stands behind either name */
};

extern const struct name_row names_outer[], names_outer_one_added[], names_outer_gpt2[], names_outer_phi[];
extern const struct name_row names_norms[], names_norms_after[], names_norms_gemma[], names_norms_post[];
extern const struct name_row names_attention[], names_attention_qwen2[], names_attention_plain[];
extern const struct name_row names_attention_fused[], names_attention_phi[], names_layer_gpt2[];
extern const struct name_row names_head_norms[], names_head_norms_one_added[], names_whole_norms[];
extern const struct name_row names_mlp[], names_mlp_fused[], names_mlp_phi[];
extern const struct name_row names_mixtral[], names_experts[], names_granite_experts[];
extern const struct name_row names_norms_next[], names_attention_gated[], names_delta[], names_delta_next[];
extern const struct name_row names_experts_fused[], names_shared_expert[];
extern const struct name_row names_attention_gpt_oss[], names_experts_gpt_oss[];
extern const struct name_row names_outer_gemma4[], names_norms_gemma4[], names_attention_gemma4[];
extern const struct name_row names_experts_gemma4[], names_layer_embeddings[];

enum family_uses { /* groups of settings, bits */
                   USES_HALVES =
                       1 << 0, /* GGUF's files have rows of queries and keys by pairs: rope.halves */
                   USES_WINDOW = 1 << 1, /* sliding_window */
                   USES_EXPERTS = 1 << 2,
                   USES_CAPS = 1 << 3,    /* of scores and logits, and query_pre_attn_scalar */
                   USES_FACTORS = 1 << 4, /* multipliers of embeddings, residuals, scores and logits */
                   USES_DELTA = 1 << 5,   /* delta nets */
                   USES_PARTS = 1 << 6,   /* partial_rotary_factor */
                   USES_BIASES = 1 << 7,  /* attention_bias and mlp_bias */
                   USES_GROWTH = 1 << 8,  /* llama_4_scaling_beta, and YaRN's magnitude by mscale_all_dim */
                   USES_LONG = 1 << 9,    /* factors by the length of the context */
                   USES_LAYER_NORM = 1 << 10,
                   USES_NO_ROPE = 1 << 11,
                   USES_FIXED_TURNS = 1 << 12,    /* YaRN's beta_fast 32, beta_slow 1 */
                   USES_LIST = 1 << 13,           /* layer_types may be any list: GGUF has a key for it */
                   USES_GROUPS = 1 << 14,         /* value heads stay as they are in GGUF's files */
                   USES_WIDE_FF = 1 << 15,        /* four times the width, if it is not said */
                   USES_TURNING_LAYERS = 1 << 16, /* no_rope_layers: every fourth does not turn */
                   USES_WINDOW_BASE = 1 << 17,    /* layers with a window may have any rotary base */
                   USES_APART = 1 << 18,          /* and heads of another size (config_apart.h) */
                   USES_RANKED_MERGES = 1 << 19   /* a tokenizer of characters merges by rank (tokens.h) */
};

#define FAMILY_MOST_NAMES 8

struct family {
    const char *model_type;
    const char *architecture; /* GGUF's; NULL: a wrapper, whose text_config has a model_type of its own */
    const char *text_type;    /* of a wrapper: what text_config is if it does not say */
    unsigned uses;            /* enum family_uses */
    /* Every so many layers one attends to everything; the others are `special`. 0: all are alike. */
    uint32_t period;
    float window_base;    /* of rotary positions in layers with a window; 0: that of the others */
    const char *special;  /* in layer_types: sliding_attention or linear_attention */
    const char *defaults; /* a JSON object: what the class fills in; "{}": nothing but what config.c does */
    const char *fixed;  /* a JSON object: values that keys must have if they are there; a list: any of them */
    const char *layers; /* before the number of a layer */
    const char *optional;                            /* what may stand before any name; NULL: nothing */
    const struct name_row *names[FAMILY_MOST_NAMES]; /* tables, each ended by a row without a name */
};

/* NULL: none has this model_type. */
const struct family *family_by_type(const char *model_type);

/* The i-th; NULL past the last. */
const struct family *family_at(unsigned i);

#endif
