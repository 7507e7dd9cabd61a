# SPDX-License-Identifier: MIT
"""A request that outlives the program that sent it.

python examples/take_over.py [--connect ENDPOINT] [QUESTION]    prints a ticket and exits
python examples/take_over.py [--connect ENDPOINT] --take TICKET  prints the output, from its first token on

The ticket is the right to read the output: keep it secret."""

import argparse
import sys

import quern

KEEP_S = 60

parser = argparse.ArgumentParser()
parser.add_argument("--connect", help="ipc://PATH, tcp://HOST:PORT or a run directory; default: that of this user")
parser.add_argument("--take", metavar="TICKET")
parser.add_argument("question", nargs="?", default="What is Quern?")
given = parser.parse_args()

try:
    with quern.Client(given.connect) as client:
        if given.take:
            session, request = (bytes.fromhex(part) for part in given.take.split("."))
            print(client.attach(request, session).text())
        else:
            stream = client.chat([{"role": "user", "content": given.question}], max_tokens=64, keep_s=KEEP_S)
            next(stream)  # the pool has it
            print(f"{client.session.hex()}.{stream.id.hex()}")
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
