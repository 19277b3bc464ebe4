"""Record the answers of the version at hand: `python -m tests.recorded.make FILE`. Lines with seconds, for people."""

from __future__ import annotations

import itertools
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


_late_now = False


def _late(*_: Any) -> None:
    global _late_now
    _late_now = True
    raise TimeoutError


def one(item: tuple[dict[str, Any], tuple[str, ...]]) -> dict[str, Any]:
    record, questions = item
    signal.signal(signal.SIGALRM, _late)
    answers, start = {}, time.process_time()
    global _late_now
    for question in questions:
        _late_now = False
        signal.alarm(_MOST_SECONDS)
        try:
            answers[question] = answer(record, question)
        except Exception:
            if not _late_now:  # the alarm may surface as another error
                raise
        finally:
            signal.alarm(0)
    return {**record, "answers": answers, "seconds": round(time.process_time() - start, 2)}


if __name__ == "__main__":
    target = Path(sys.argv[1])
    done = len(target.read_text(encoding="utf-8").splitlines()) if target.exists() else 0  # go on where it was stopped
    with multiprocessing.Pool(2) as pool, target.open("a", encoding="utf-8") as out:
        for found in pool.imap(one, itertools.islice(asked(), done, None), chunksize=4):
            out.write(json.dumps(found) + "\n")
            out.flush()
