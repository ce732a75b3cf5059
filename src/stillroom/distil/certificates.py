"""What the certificate of a run says besides its plan: models, software, what was public, and what is assumed."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from stillroom.distil import forms, prompts, selffilter
from stillroom.distil.keywords import KEYWORDS_BEFORE
from stillroom.distil.topics import SALT
from stillroom.embed.base import Embedder
from stillroom.lexicon import digests
from stillroom.lm.base import LanguageModel
from stillroom.privacy.noise import Noise, OpenDPNoise
from stillroom.release import folder
from stillroom.release.schema import Certificate, PlanRecord


def is_real(noise: Noise | None) -> bool:
    """Say whether the noise is OpenDP's; any other voids a certificate."""
    return noise is None or type(noise) is OpenDPNoise


def certificate(
    plan: PlanRecord,
    lm: LanguageModel,
    embedder: Embedder | None,
    noise: Noise | None,
    *,
    run: str,
    rehearsal: bool = False,
    ledger: Mapping[str, str] | None = None,
) -> Certificate:
    """Return the certificate of a run, still without its files; see `release.folder.certify`."""
    return folder.certify(
        plan,
        run=run,
        rehearsal=rehearsal,
        assumptions=assumptions(plan, lm, noise),
        models=named(lm, embedder),
        public_inputs=public_inputs(plan),
        ledger=ledger,
        software=software(),
    )


def bound(
    plan: PlanRecord, lm: LanguageModel, embedder: Embedder | None, noise: Noise | None
) -> dict[str, dict[str, Any] | str]:
    """Return all that a run is begun with and must go on with: with another one it would pay once and draw twice."""
    return {
        "plan": plan.model_dump(mode="json"),
        "models": named(lm, embedder),
        "device or type": lm.placed,
        "public inputs": public_inputs(plan),
        "software": software(),
        "noise": "OpenDP" if is_real(noise) else "a stand-in",
    }


def named(lm: LanguageModel, embedder: Embedder | None) -> dict[str, str]:
    """Return the models by name, with what their bytes are."""
    named = {"lm": f"{lm.name} {lm.digest}".strip()}
    if embedder is not None:
        named["embedder"] = f"{embedder.name} {embedder.digest}".strip()
    return named


def assumptions(plan: PlanRecord, lm: LanguageModel, noise: Noise | None) -> tuple[str, ...]:
    """Return what the guarantee stands on, in sentences for the certificate; the first one voids it for test noise."""
    where = f" ({lm.placed})" if lm.placed else ""
    found = [
        f"A document's votes do not depend on the other documents in its batch: tested bit for bit before the run, "
        f"with {lm.name}{where}.",
        "OpenDP samples the noise it documents; the process and the machine that ran it were the operator's own.",
        "Form, task, word list, prompts and all parameters were fixed without looking at the collection.",
        "A unit id names one unit; whoever appears in another unit's documents is not protected there.",
        "The language model was not trained on the collection.",
        "The collection's other releases are all in the same ledger; those elsewhere add to this cost.",
    ]
    if not is_real(noise):
        found.insert(
            0, f"{folder.VOID} the noise came from {type(noise).__name__}, a test's stand-in, so nothing is guaranteed."
        )
    if plan.keywords.extractor == "lm":
        found.append("The language model extracts keywords from each document alone, in fixed shapes.")
    return tuple(found)


def public_inputs(plan: PlanRecord) -> dict[str, str]:
    """Return the sha256 of all that was declared public: word lists, form, task, prompts, questions, salt of parts."""
    shown = prompts.document_prompt(plan, "")
    form = plan.text.form.model_dump_json() if plan.text.form else ""
    parts = {
        **digests(plan.keywords.word_list),
        "parts": hashlib.sha256(SALT).hexdigest(),
        "keyword prompt": _sha256(KEYWORDS_BEFORE),
        "form": _sha256(form),
        "task": _sha256(plan.task),
        "prompt": _sha256("\0".join((shown.before, shown.after, shown.reply))),
        "form proposal": _sha256(forms.PROPOSAL),
        "prose": _sha256(prompts.PROSE_BEFORE),
        "self-filter": _sha256(json.dumps(selffilter.QUESTIONS, sort_keys=True)),
    }
    return dict(sorted(parts.items()))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def software() -> dict[str, str]:
    """Return the versions of what decides about a release."""
    found = {}
    for package in ("stillroom", "opendp", "torch", "transformers", "wordfreq"):
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found
