"""A hosted model writes text over HTTP; the server here is a real one on this machine."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from stillroom.errors import BadOption, ModelCallFailed, ModelUnfit
from stillroom.lm.base import Prompt
from stillroom.lm.hosted import KEY, HostedLM, key_from

SECRET = "Ada Lovelace has Snurflepox"


class Server:
    """Answers requests from a script of (status, headers, body); the last one for ever."""

    def __init__(self) -> None:
        self.script: list[tuple[int, dict[str, str], Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server.requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
                server.headers.append({name.lower(): value for name, value in self.headers.items()})
                server.paths.append(self.path)
                status, headers, body = server.script.pop(0) if len(server.script) > 1 else server.script[0]
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {**headers, "Content-Length": str(len(data))}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def says(self, text: str | None) -> None:
        self.script.append((200, {}, {"choices": [{"message": {"role": "assistant", "content": text}}]}))

    def fails(self, status: int, **headers: str) -> None:
        # A server that repeats the prompt in its error, as some do.
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.script.append((status, named, {"error": {"message": f"cannot process: {SECRET}"}}))

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def waits() -> list[float]:
    return []


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    with httpx.Client(trust_env=False) as client:
        yield client


@pytest.fixture
def lm(server: Server, client: httpx.Client, waits: list[float]) -> HostedLM:
    return HostedLM(server.url, "big", "a-key", client=client, sleep=waits.append, tries=4)


def test_scores_are_refused_before_any_request(lm: HostedLM, server: Server) -> None:
    with pytest.raises(ModelUnfit, match="private prediction"):
        lm.need("scores")
    for call in (lambda: lm.encode("a"), lambda: lm.read([Prompt("a")]), lambda: lm.open([Prompt("a")])):
        with pytest.raises(ModelUnfit):
            call()
    with pytest.raises(ModelUnfit):
        lm.rows_independent()
    lm.need("generate")
    assert server.requests == []


def test_a_prompt_is_one_request_with_its_three_parts_at_temperature_0(lm: HostedLM, server: Server) -> None:
    server.says("Blergon.")
    assert lm.generate([Prompt("Read. ", "A note.", " Answer.")], 40, stop=["\n"]) == ["Blergon."]
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == "Bearer a-key"
    assert server.requests == [
        {
            "model": "big",
            "messages": [{"role": "user", "content": "Read. A note. Answer."}],
            "max_tokens": 40,
            "temperature": 0,
            "stream": False,
            "stop": ["\n"],
        }
    ]


def test_each_prompt_is_asked_alone_and_answers_keep_their_order(lm: HostedLM, server: Server) -> None:
    for text in ("one", "two", "three"):
        server.says(text)
    assert lm.generate([Prompt("a"), Prompt("b"), Prompt("c")], 5) == ["one", "two", "three"]
    assert [request["messages"][0]["content"] for request in server.requests] == ["a", "b", "c"]


def test_without_a_key_none_is_sent(server: Server, client: httpx.Client) -> None:
    server.says("hm")
    HostedLM(server.url + "/", "big", client=client).generate([Prompt("a")], 5)
    assert "authorization" not in server.headers[0]
    assert server.paths == ["/v1/chat/completions"]


@pytest.mark.parametrize("said", ["Diagnosis: Zonkitis", " Zonkitis"])
def test_a_reply_begun_is_sent_as_the_models_own_turn_and_not_repeated(lm: HostedLM, server: Server, said: str) -> None:
    server.says(said)
    assert lm.generate([Prompt("Read.", reply="Diagnosis:")], 5) == [" Zonkitis"]
    assert server.requests[0]["messages"][1] == {"role": "assistant", "content": "Diagnosis:"}


def test_every_stop_string_cuts_though_a_server_takes_four(lm: HostedLM, server: Server) -> None:
    server.says("one two three four five six")
    assert lm.generate([Prompt("a")], 50, stop=["zero", "six", "five", "four", "two"]) == ["one "]
    assert server.requests[0]["stop"] == ["zero", "six", "five", "four"]


def test_no_tokens_and_no_content_are_no_text(lm: HostedLM, server: Server) -> None:
    assert lm.generate([Prompt("a")], 0) == [""]
    server.says(None)
    assert lm.generate([Prompt("a")], 5) == [""]
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_busy_server_is_asked_again_after_longer_and_longer(
    lm: HostedLM, server: Server, waits: list[float], status: int
) -> None:
    server.fails(status)
    server.fails(status)
    server.says("there")
    assert lm.generate([Prompt("a")], 5) == ["there"]
    assert waits == [1.0, 2.0]


def test_the_wait_a_server_asks_for_is_kept_up_to_30_seconds(lm: HostedLM, server: Server, waits: list[float]) -> None:
    server.fails(429, Retry_After="7")
    server.fails(429, Retry_After="86400")
    server.fails(429, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
    server.says("there")
    assert lm.generate([Prompt("a")], 5) == ["there"]
    assert waits == [7.0, 30.0, 4.0]


def test_tries_are_bounded(lm: HostedLM, server: Server, waits: list[float]) -> None:
    server.fails(503)
    with pytest.raises(ModelCallFailed, match="after 4 tries: status 503"):
        lm.generate([Prompt("a")], 5)
    assert len(server.requests) == 4
    assert len(waits) == 3


@pytest.mark.parametrize(("status", "advice"), [(400, "refused"), (401, KEY), (404, "no such model"), (302, "302")])
def test_a_refusal_is_final(lm: HostedLM, server: Server, waits: list[float], status: int, advice: str) -> None:
    server.fails(status, Location="http://127.0.0.1:9/elsewhere")
    with pytest.raises(ModelCallFailed, match=advice):
        lm.generate([Prompt("a")], 5)
    assert (len(server.requests), waits) == (1, [])


@pytest.mark.parametrize(
    "body", [b"<html>", b"\xff", {}, [], {"choices": []}, {"choices": [{"text": "x"}]}, {"choices": [{"message": 3}]}]
)
def test_an_answer_of_another_shape_is_named_so(lm: HostedLM, server: Server, body: Any) -> None:
    server.script.append((200, {}, body))
    with pytest.raises(ModelCallFailed, match="chat/completions"):
        lm.generate([Prompt("a")], 5)


def test_no_server_is_named_so(client: httpx.Client, waits: list[float]) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lm = HostedLM(f"http://127.0.0.1:{port}", "big", client=client, sleep=waits.append, tries=2)
    with pytest.raises(ModelCallFailed, match="could not be reached") as caught:
        lm.generate([Prompt("a")], 5)
    assert waits == [1.0]
    assert caught.value.__context__ is None  # httpx errors carry the request, and with it the prompt


def test_a_silent_server_is_not_waited_for_for_ever(client: httpx.Client) -> None:
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        lm = HostedLM(f"http://127.0.0.1:{deaf.getsockname()[1]}", "big", client=client, timeout=0.1, tries=1)
        with pytest.raises(ModelCallFailed, match=r"no answer within 0\.1 s"):
            lm.generate([Prompt("a")], 5)


@pytest.mark.parametrize("status", [400, 401, 503])
def test_no_error_and_no_log_holds_the_prompt_or_the_key(
    lm: HostedLM, server: Server, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    server.fails(status)
    with pytest.raises(ModelCallFailed) as caught:
        lm.generate([Prompt("Read.", SECRET)], 5)
    assert SECRET in server.requests[0]["messages"][0]["content"]
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__cause__ is None
    assert error.__context__ is None
    told = str(error) + repr(error) + caplog.text + repr(lm)
    assert "Snurflepox" not in told
    assert "a-key" not in told


@pytest.mark.parametrize("address", ["", "localhost:8000", "ftp://here/v1", "http://", "file:///etc/passwd"])
def test_an_address_that_is_none_is_refused_at_once(address: str) -> None:
    with pytest.raises(BadOption, match="address"):
        HostedLM(address, "big")


def test_the_key_has_a_variable_of_its_own() -> None:
    assert key_from({KEY: "mine", "OPENAI_API_KEY": "other"}) == "mine"
    assert key_from({"OPENAI_API_KEY": "other"}) is None
    assert key_from({KEY: ""}) is None
