"""A worker of the local engine: `python -m caplens.scale.worker` takes tasks from standard input until it ends."""

from __future__ import annotations

import os
import pickle
import signal
import sys

from caplens.scale.engines import receive, send
from caplens.storage.sealed import adopt_copies


def main() -> None:
    """Answer every task with whether it succeeded, and its result or its exception."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started us ends us
    tasks = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what some library prints is no answer
    try:
        while True:
            if told := receive(tasks):  # something else than before
                copies, work = pickle.loads(told)
                adopt_copies(copies)
            task = pickle.loads(receive(tasks))
            try:
                answer = pickle.dumps((True, work(task)))
            except Exception as error:
                answer = pickle.dumps((False, error))
            send(answers, answer)
    except (EOFError, BrokenPipeError):
        sys.exit(0)


if __name__ == "__main__":
    main()
