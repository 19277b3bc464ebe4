"""Record the answers of the version at hand: `python -m tests.recorded.make FILE`. Lines with seconds, for people."""

from __future__ import annotations

import json
import multiprocessing
import signal
import sys
import time
from pathlib import Path
from typing import Any

from tests.recorded.ask import answer
from tests.recorded.plans import asked

_MOST_SECONDS = 5


def _late(*_: Any) -> None:
    raise TimeoutError


def one(item: tuple[dict[str, Any], tuple[str, ...]]) -> dict[str, Any]:
    record, questions = item
    signal.signal(signal.SIGALRM, _late)
    answers, start = {}, time.process_time()
    for question in questions:
        signal.alarm(_MOST_SECONDS)
        try:
            answers[question] = answer(record, question)
        except TimeoutError:
            pass
        finally:
            signal.alarm(0)
    return {**record, "answers": answers, "seconds": round(time.process_time() - start, 2)}


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool, Path(sys.argv[1]).open("w", encoding="utf-8") as out:
        for found in pool.imap(one, asked(), chunksize=4):
            out.write(json.dumps(found) + "\n")
            out.flush()
