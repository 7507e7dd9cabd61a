# SPDX-License-Identifier: MIT
"""Several questions at once over one connection, with asyncio; requests that the full pool rejects are retried.

python examples/several.py [--connect ENDPOINT] QUESTION…"""

import argparse
import asyncio
import sys

import quern


async def answer(client: quern.AsyncClient, question: str) -> str:
    while True:
        try:
            return await client.chat([{"role": "user", "content": question}], max_tokens=100).text()
        except quern.Overloaded as full:
            await asyncio.sleep(full.retry_after)


async def main(endpoint: str | None, questions: list[str]) -> None:
    async with quern.AsyncClient(endpoint) as client:
        answers = await asyncio.gather(*(answer(client, question) for question in questions))
    for question, text in zip(questions, answers, strict=True):
        print(f"{question}\n    {text}")


parser = argparse.ArgumentParser()
parser.add_argument("--connect", help="ipc://PATH, tcp://HOST:PORT or a run directory; default: that of this user")
parser.add_argument("questions", nargs="*", default=["Who are you?", "What is a quern?"])
given = parser.parse_args()
try:
    asyncio.run(main(given.connect, given.questions))
except quern.Error as error:
    sys.exit(f"{error.name}: {error}")
