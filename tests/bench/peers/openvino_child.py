# SPDX-License-Identifier: MIT
"""A model in OpenVINO GenAI on the CPU, which generates when a line of stdin says so, and tells how long it took:

    openvino_child.py MODEL TOKENIZER THREADS      {"prompt": IDS, "new": IDS} → {"first_s": S, "next_s": S}
    openvino_child.py --version

Prompts are random ids, and no prefix is cached, so each is computed. Keys and values are kept in f16."""

import json
import os
import random
import sys

import numpy
import openvino
import openvino_genai

CACHE_GB = 1
MOST_BATCHED = 8192  # ids of a step: the longest prompt in one
LEAST_ID, MOST_ID = 300, 100000


def generate(pipeline, n_prompt, n_new):
    ids = numpy.array([[random.randrange(LEAST_ID, MOST_ID) for _ in range(n_prompt)]], dtype=numpy.int64)
    inputs = openvino_genai.TokenizedInputs(openvino.Tensor(ids), openvino.Tensor(numpy.ones_like(ids)))
    config = openvino_genai.GenerationConfig()
    config.max_new_tokens = config.min_new_tokens = n_new
    config.ignore_eos, config.do_sample = True, False
    metrics = pipeline.generate(inputs, config).perf_metrics
    if metrics.get_num_generated_tokens() != n_new or metrics.get_num_input_tokens() != n_prompt:
        sys.exit(f"openvino_child: {metrics.get_num_generated_tokens()} ids made of {metrics.get_num_input_tokens()}, "
                 f"instead of {n_new} of {n_prompt}")
    return {"first_s": metrics.get_ttft().mean / 1e3, "next_s": metrics.get_tpot().mean / 1e3 if n_new > 1 else None}


def main():
    if sys.argv[1:] == ["--version"]:
        print(openvino_genai.__version__)
        return
    model, tokenizer, threads = sys.argv[1:]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the libraries print is no answer
    scheduler = openvino_genai.SchedulerConfig()
    scheduler.enable_prefix_caching, scheduler.cache_size = False, CACHE_GB
    scheduler.max_num_batched_tokens = MOST_BATCHED
    pipeline = openvino_genai.LLMPipeline(model, openvino_genai.Tokenizer(tokenizer), "CPU", scheduler_config=scheduler,
                                          INFERENCE_NUM_THREADS=int(threads), KV_CACHE_PRECISION="f16")
    generate(pipeline, 16, 2)  # warms up
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        wanted = json.loads(line)
        print(json.dumps(generate(pipeline, wanted["prompt"], wanted["new"])), file=answers)


main()
