"""A hosted model behind an OpenAI-compatible address: it writes text, and gives no scores."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import httpx

from stillroom.errors import BadOption, ModelCallFailed
from stillroom.lm.base import LanguageModel, Prompt

KEY = "STILLROOM_API_KEY"
"""The environment variable that holds the key. One of its own: another service's key must not be sent here."""

_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 30.0
_MOST_STOPS = 4


def key_from(environ: Mapping[str, str]) -> str | None:
    """Return the key that the environment gives, or None."""
    return environ.get(KEY) or None


class HostedLM(LanguageModel):
    """Writes text with a hosted model; private prediction with it is refused before anything is spent.

    Every prompt is a request of its own, at temperature 0. A request that meets a busy or broken server
    (408, 425, 429, 5xx) or no server is sent again after 1, 2, 4 … seconds, or what the server asks for, at most 30.

    Whoever runs the address sees the prompts: send released texts only.

    Args:
        base_url: such as http://localhost:8000/v1; /chat/completions is added.
        model: its name there.
        key: sent as a bearer token when given; see `key_from`.
        timeout: seconds to wait for one answer.
        tries: how often a request is sent at most.
        client: the HTTP client to use, such as one with other certificates or proxies.
        sleep: how to wait.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        key: str | None = None,
        *,
        timeout: float = 120.0,
        tries: int = 5,
        client: httpx.Client | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            address = httpx.URL(base_url)
        except httpx.InvalidURL as wrong:
            raise BadOption("the address of the model", "unreadable", "like http://localhost:8000/v1") from wrong
        if address.scheme not in ("http", "https") or not address.host:
            raise BadOption("the address of the model", repr(base_url), "like http://localhost:8000/v1")
        if tries < 1:
            raise BadOption("tries", tries, "at least 1")
        self.name = f"{model} at {address.host}"
        self.capabilities = frozenset({"generate"})
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._timeout, self._tries, self._sleep = timeout, tries, sleep
        self._client = client if client is not None else httpx.Client()

    def __enter__(self) -> HostedLM:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def generate(self, prompts: Sequence[Prompt], max_tokens: int, stop: Sequence[str] = ()) -> list[str]:
        """Return the continuation of each prompt, asked for one by one.

        Raises ModelCallFailed, whose message holds no text of prompt or answer.
        """
        if max_tokens < 1:
            return ["" for _ in prompts]
        return [self._ask(prompt, max_tokens, stop) for prompt in prompts]

    def _ask(self, prompt: Prompt, max_tokens: int, stop: Sequence[str]) -> str:
        messages = [{"role": "user", "content": prompt.before + prompt.body + prompt.after}]
        if prompt.reply:
            messages.append({"role": "assistant", "content": prompt.reply})
        request: dict[str, Any] = {
            "model": self._model,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
            "stream": False,
        }
        if stop:
            request["stop"] = list(stop[:_MOST_STOPS])
        text = self._text_of(self._post(request))
        # Some servers go on from the last turn, some begin it anew.
        text = text.removeprefix(prompt.reply) if prompt.reply else text
        ends = [at for mark in stop if (at := text.find(mark)) >= 0]
        return text[: min(ends, default=len(text))]

    def _post(self, request: dict[str, Any]) -> httpx.Response:
        """Return the server's good answer. Errors are raised outside `except`: their context would hold the prompt."""
        reason = ""
        for attempt in range(self._tries):
            wait = min(2.0**attempt, _LONGEST_WAIT)
            try:
                response = self._client.post(self._url, json=request, headers=self._headers, timeout=self._timeout)
            except httpx.TimeoutException:
                reason = f"no answer within {self._timeout:g} s"
            except httpx.TransportError as failure:
                reason = f"the server could not be reached ({type(failure).__name__})"
            else:
                if response.status_code == 200:
                    return response
                reason = _reason(response.status_code)
                if response.status_code not in _AGAIN:
                    raise ModelCallFailed(self.name, reason, attempt + 1)
                wait = _asked_wait(response, wait)
            if attempt + 1 < self._tries:
                self._sleep(wait)
        raise ModelCallFailed(self.name, reason, self._tries)

    def _text_of(self, response: httpx.Response) -> str:
        try:
            content = response.json()["choices"][0]["message"]["content"]
        except (ValueError, LookupError, TypeError):
            content = 0
        if content is None:
            return ""
        if not isinstance(content, str):
            raise ModelCallFailed(self.name, "the answer is not that of a chat/completions address", 1)
        return content


def _reason(status: int) -> str:
    meaning = {
        400: "the request was refused, perhaps as too long",
        401: f"the key was refused: set {KEY}",
        403: f"the key may not do this: set another {KEY}",
        404: "there is no such model or address",
        413: "the request was refused as too long",
        429: "too many requests",
    }
    return f"status {status}" + (f", {meaning[status]}" if status in meaning else "")


def _asked_wait(response: httpx.Response, otherwise: float) -> float:
    """Return the seconds that the server asks to wait, from 0 to the longest, or `otherwise`."""
    try:
        asked = float(response.headers["retry-after"])
    except (KeyError, ValueError):
        return otherwise
    return min(max(asked, 0.0), _LONGEST_WAIT) if asked == asked else otherwise
