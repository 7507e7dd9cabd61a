/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_FAMILIES_H
#define MODEL_HUGGINGFACE_FAMILIES_H

/* Model types of Hugging Face's transformers: their GGUF architecture, the defaults of their class, the
 * supported values in config.json, and the names of their tensors. Data only; config.h and names.h read it.
 *
 * To add one whose architecture Quern supports: a row in families.c, with tables of names from
 * family_names.c. */

#include <stdbool.h>
#include <stdint.h>

/* What a dimension of a tensor counts; names.c has the number and the key for each. */
enum extent {
    NONE, /* as the number of rows: a vector */
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

/* How a published tensor is converted to GGUF's. */
enum how {
    COPIED,
    ONE_ADDED,    /* to each number */
    DECAY,        /* −exp of each number; heads as in VALUE_HEADS */
    TURNED,       /* rows and columns exchanged */
    FIRST_HALF,   /* of the rows of each matrix */
    SECOND_HALF,  /* of the rows of each matrix */
    EVEN_ROWS,    /* of each matrix; rows may be stored as columns, and MXFP4 with separate exponents */
    ODD_ROWS,     /* the same for the other rows */
    VALUE_HEADS,  /* the last rows, those of value heads, are reordered to alternate between key heads */
    VALUE_COLUMNS /* the same for columns */
};

enum of { OF_MODEL, OF_LAYER, OF_ATTENDING, OF_RECURRENT };

/* When a tensor must be present. */
enum need {
    ALWAYS,
    UNTIED,
    FUSED_EXPERTS,    /* if all experts of a layer are in one tensor */
    SEPARATE_EXPERTS, /* if each has its own */
    MXFP4_EXPERTS,
    PLAIN_EXPERTS,
    SHARED_EXPERT,
    BESIDE_EXPERTS,   /* if layers have experts besides a dense feed-forward */
    OWN_KEYS,         /* in layers that attend to their own keys */
    OWN_VALUES,       /* in layers whose values are not their keys */
    LAYER_EMBEDDINGS, /* if tokens have an embedding for each layer */
    NEVER
};

enum bias { BIAS_NONE, BIAS_MUST, BIAS_OF_ATTENTION, BIAS_OF_MLP }; /* the last two depend on config.json */

enum shape {
    AS_SAID,        /* rows, columns */
    STACKED,        /* the same for each expert, in one tensor */
    STACKED_TURNED, /* the same, with rows and columns exchanged */
    STACKED_BLOCKS, /* rows, blocks of 32 columns, 16 bytes */
    MIDDLE_ONE,     /* rows, 1, columns */
    ROW_OF_ONE      /* 1, columns: a vector */
};

struct name_row {
    const char *theirs; /* before ".weight" and ".bias"; "*" is an expert's number */
    const char *ours;   /* the same; NULL: not used */
    enum extent rows, columns;
    enum of of;
    enum need need;
    enum bias bias;
    enum how how;
    enum shape shape;
    bool bare; /* neither name has a suffix */
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
                       1 << 0, /* GGUF's files have rows of queries and keys in pairs: rope.halves */
                   USES_WINDOW = 1 << 1, /* sliding_window */
                   USES_EXPERTS = 1 << 2,
                   USES_CAPS = 1 << 3,    /* of scores and logits, and query_pre_attn_scalar */
                   USES_FACTORS = 1 << 4, /* multipliers of embeddings, residuals, scores and logits */
                   USES_DELTA = 1 << 5,   /* delta nets */
                   USES_PARTS = 1 << 6,   /* partial_rotary_factor */
                   USES_BIASES = 1 << 7,  /* attention_bias and mlp_bias */
                   USES_GROWTH = 1 << 8,  /* llama_4_scaling_beta, and YaRN's magnitude by mscale_all_dim */
                   USES_LONG = 1 << 9,    /* factors that depend on the length of the context */
                   USES_LAYER_NORM = 1 << 10,
                   USES_NO_ROPE = 1 << 11,
                   USES_FIXED_TURNS = 1 << 12,    /* YaRN's beta_fast 32, beta_slow 1 */
                   USES_LIST = 1 << 13,           /* layer_types may be any list: GGUF has a key for it */
                   USES_GROUPS = 1 << 14,         /* value heads have the same order in GGUF's files */
                   USES_WIDE_FF = 1 << 15,        /* four times the width, if not given */
                   USES_TURNING_LAYERS = 1 << 16, /* no_rope_layers: every fourth layer has no rotation */
                   USES_WINDOW_BASE = 1 << 17,    /* layers with a window may have any rotary base */
                   USES_APART = 1 << 18,          /* and heads of another size (config_apart.h) */
                   USES_RANKED_MERGES = 1 << 19   /* its character tokenizer merges by rank (tokens.h) */
};

#define FAMILY_MOST_NAMES 8

struct family {
    const char *model_type;
    const char *architecture; /* GGUF's; NULL: a wrapper, whose text_config has its own model_type */
    const char *text_type;    /* for a wrapper: the type of a text_config that does not give one */
    unsigned uses;            /* enum family_uses */
    /* Every n-th layer attends to everything; the others are `special`. 0: all are alike. */
    uint32_t period;
    float window_base;    /* of rotary positions in layers with a window; 0: that of the others */
    const char *special;  /* in layer_types: sliding_attention or linear_attention */
    const char *defaults; /* a JSON object: the class's defaults; "{}": only those of config.c */
    const char *fixed;    /* a JSON object: values that keys must have if present; a list: any of them */
    const char *layers;   /* prefix before the number of a layer */
    const char *optional; /* prefix that any name may have; NULL: none */
    const struct name_row *names[FAMILY_MOST_NAMES]; /* tables, each ended by a row without a name */
};

/* NULL: none has this model_type. */
const struct family *family_by_type(const char *model_type);

/* The i-th; NULL after the last. */
const struct family *family_at(unsigned i);

#endif
