"""Threads that wait for each other without burning the time of those they wait for."""

from __future__ import annotations

import os
import sys
from collections.abc import MutableMapping


def wait_patiently(environ: MutableMapping[str, str] = os.environ) -> None:
    """Let OpenMP's threads sleep soon when they wait; call it before torch is imported, which reads this once.

    By default they spin for milliseconds at the end of every small matrix product. Where other processes want the
    cores, that holds up the very thread that is waited for: a product of 2 ms takes 20 to 60 (PyTorch 2.13, two
    threads on two cores with one or two other processes), and 4 to 7 with this. On an idle machine nothing changes.
    What the user has set stays.
    """
    if "OMP_WAIT_POLICY" not in environ:
        environ.setdefault("GOMP_SPINCOUNT", "1000")


def use(count: int, environ: MutableMapping[str, str] = os.environ) -> None:
    """Have torch use so many threads in this process, whether it is imported already or later."""
    environ["OMP_NUM_THREADS"] = str(count)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(count)
