"""A model id costs no half minute where no hub answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stillroom.hub import only_here, reachable


class Answering(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_a_hub_that_answers_anything_is_there(hub: str) -> None:
    assert reachable({"HF_ENDPOINT": hub}) and not only_here("some/model", {"HF_ENDPOINT": hub})
    assert not reachable({"HF_ENDPOINT": hub, "HF_HUB_OFFLINE": "1"})


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "nonsense", "http://[::"])
def test_one_that_does_not_is_not_asked(address: str) -> None:
    assert only_here("some/model", {"HF_ENDPOINT": address})


def test_a_folder_needs_no_hub(tmp_path: Path) -> None:
    assert only_here(tmp_path, {})
