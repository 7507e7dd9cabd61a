# SPDX-License-Identifier: MIT
"""The smallest program: sends a question and prints the answer as it is generated.

python examples/hello.py [--connect ENDPOINT] [QUESTION]

For a model without chat training use client.generate(TEXT), which continues the text."""

import argparse
import sys

import quern

parser = argparse.ArgumentParser()
parser.add_argument("--connect", help="ipc://PATH, tcp://HOST:PORT or a run directory; default: that of this user")
parser.add_argument("question", nargs="?", default="What is Quern?")
given = parser.parse_args()
try:
    with quern.Client(given.connect) as client:
        for piece in client.chat([{"role": "user", "content": given.question}], max_tokens=64):
            print(piece.text, end="", flush=True)
            if piece.end:
                print(f"\n({piece.end.output_tokens} tokens, {piece.end.reason})", file=sys.stderr)
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
