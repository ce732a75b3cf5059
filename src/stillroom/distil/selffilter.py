"""The self-filter: the model says whether a released text helps the task. It reads released text alone, and only drops.

Source: DP-SynRAG (arXiv 2510.06719), step 5. The three published kinds of question, or the user's own task sentence.
"""

from __future__ import annotations

from collections.abc import Sequence

from stillroom.lm.base import LanguageModel, Prompt
from stillroom.release.schema import PlanRecord

QUESTIONS = {
    "medical": "Does this text name a diagnosis? Invented names of diseases count.",
    "movielens": "Does this text name a film of the 20th century?",
    "task": "Does this text hold a fact that helps with this task: {task}",
}


def useful(texts: Sequence[str], plan: PlanRecord, lm: LanguageModel) -> list[bool]:
    """Return for each released text whether it is kept. Without a filter (SearchQA, off, no task) all are."""
    question = QUESTIONS.get(plan.selffilter)
    if question is None or (plan.selffilter == "task" and not plan.task):
        return [True] * len(texts)
    asked = question.format(task=plan.task)
    yes, no = _first(lm, (" YES", "YES", " Yes", "Yes")), _first(lm, (" NO", "NO", " No", "No"))
    kept = []
    for text in texts:
        prompt = Prompt("Text: ", text, f"\n\n{asked} Answer YES or NO.\n", public=True)
        scores = lm.open(lm.read([prompt]), public=True).scores([*yes, *no])[0]
        kept.append(bool(scores[: len(yes)].max() >= scores[len(yes) :].max()))
    return kept


def _first(lm: LanguageModel, words: Sequence[str]) -> list[int]:
    return sorted({ids[0] for word in words if (ids := lm.encode(word))})
