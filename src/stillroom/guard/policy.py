"""A policy: what each category is protected by, at least, and what that may cost.

A policy is public: it is written before any private text is read, and its every list and bound may be printed.
"""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from stillroom.errors import BadOption, FileFormat, FileMissing, PolicyInvalid, UnknownName
from stillroom.guard import categories, mechanisms
from stillroom.guard.categories import CATEGORIES
from stillroom.text import words

Tier = Literal["raw", "noisy", "surrogate", "placeholder"]
Mechanism = Literal["placeholder", "surrogate", "laplace", "tree"]

TIERS: tuple[Tier, ...] = ("raw", "noisy", "surrogate", "placeholder")
"""From the least protected to the most: the true value, ε-LDP, a stand-in drawn without it, its category alone."""

NEVER_RAW = frozenset({"language_unknown", "unknown", "password", "period"})
"""What no detector is sure of. A "period" is any date that does not read as a day: names of months are names too."""
"""What no policy hands out as it stands: what no detector could read, and what opens doors (rule 34)."""

BUILT_IN = ("clinic", "finance", "hr", "legal")


def stricter(one: Tier, other: Tier) -> Tier:
    """Return the more protected of two tiers."""
    return max(one, other, key=TIERS.index)


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CategoryRule(_Strict):
    """What one category is protected by.

    Args:
        tier: the floor; nothing but a role's entitlement goes below it. "raw" leaves what a detector takes for the
            category as it stands, and detectors err: they take a person for an organisation.
        mechanism: how the noisy tier draws ("laplace" or "tree"); else the tier's own name.
        epsilon: of one draw of the noisy tier, the same for every value of the category.
        low, high, step: public bounds and grid of "laplace": numbers, or dates with a step in days.
        dictionary: name of the public tree, or of the pool that surrogates are drawn from.
        weight: how much a value of it gives away, in [0, 1]; for the risk score.
        composite: categories of one name hang together (birth date and age) and share one draw.
    """

    tier: Tier = "placeholder"
    mechanism: Mechanism = "placeholder"
    epsilon: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    low: float | datetime.date | None = None
    high: float | datetime.date | None = None
    step: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    dictionary: str | None = None
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0
    composite: str | None = None

    @model_validator(mode="after")
    def _complete(self) -> CategoryRule:
        noisy = self.mechanism in ("laplace", "tree")
        if self.tier == "noisy" and not noisy:
            raise ValueError('the noisy tier needs mechanism = "laplace" or "tree"')
        if self.tier == "surrogate" and self.mechanism != "surrogate":
            raise ValueError('the surrogate tier needs mechanism = "surrogate"')
        if not noisy and any(each is not None for each in (self.epsilon, self.low, self.high, self.step)):
            raise ValueError('epsilon, low, high and step need mechanism = "laplace" or "tree"')
        if noisy and self.epsilon is None:
            raise ValueError(f'mechanism = "{self.mechanism}" needs an epsilon')
        if self.mechanism == "tree" and self.dictionary is None:
            raise ValueError('mechanism = "tree" needs a dictionary')
        if self.mechanism == "laplace":
            self._bounded()
        return self

    def _bounded(self) -> None:
        low, high = self.low, self.high
        if low is None or high is None or self.step is None:
            raise ValueError('mechanism = "laplace" needs public bounds low, high and step')
        if isinstance(low, datetime.date) and isinstance(high, datetime.date):
            if low >= high:
                raise ValueError(f"low = {low} is not below high = {high}")
        elif isinstance(low, datetime.date) or isinstance(high, datetime.date):
            raise ValueError("low and high must both be numbers or both be dates")
        elif not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(f"low = {low:g} is not below high = {high:g}")
        elif abs((steps := (high - low) / self.step) - round(steps)) > 1e-9 * steps:
            raise ValueError(f"from low = {low:g} no whole number of steps of {self.step:g} ends at high = {high:g}")


class ClosedWorld(_Strict):
    """The rule that a word which no public list knows counts as private.

    Args:
        on: whether it is used.
        zipf: a lower-case word counts as known from this public frequency up (`lexicon.zipf`).
        capital_zipf: the same for a word with a capital inside a sentence, which is more often a name.
        numbers: whether any number that nothing else explains counts as private.
    """

    on: bool = True
    zipf: Annotated[float, Field(ge=0, le=8)] = 2.0
    capital_zipf: Annotated[float, Field(ge=0, le=8)] = 4.0
    numbers: bool = True


class RiskRule(_Strict):
    """When the risk of a query against a template raises a tier; it never lowers one.

    Args:
        relevance: share of the relevance of the sentence in the score; the rest is its weight.
        surrogate, placeholder: scores from which noisy values become surrogates, and all become placeholders.
        raw: whether that goes for what the policy leaves raw too. Without it a house still reads what it asks for.
    """

    relevance: Annotated[float, Field(ge=0, le=1)] = 0.6
    surrogate: Annotated[float, Field(ge=0, le=1)] = 0.3
    placeholder: Annotated[float, Field(ge=0, le=1)] = 0.7
    raw: bool = True


class Account(_Strict):
    """What may be spent: ε on one subject for good, and ε newly spent by one caller in all."""

    epsilon_per_subject: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 5.0
    quota_per_caller: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1000


class Role(_Strict):
    """What a caller of this role is entitled to.

    Args:
        tiers: categories whose tier is another one for this role, lower ("raw" is recorded as not private) or higher.
        least: no category stands below this tier for the role.
        rehydrate: categories whose placeholders may be given back their values.
    """

    tiers: dict[str, Tier] = {}
    least: Tier = "raw"
    rehydrate: tuple[str, ...] = ()


class Policy(_Strict):
    """What the guard of one house does. Every category that it does not name gets a placeholder."""

    name: str
    version: Annotated[int, Field(ge=1)] = 1
    day_first: bool = False
    """Whether 3/4/1970 is the third of April."""
    categories: dict[str, CategoryRule] = {}
    formulary: tuple[str, ...] = ()
    """Words that the house calls public (its own vocabulary): the closed-world rule and mere guesses leave them."""
    words: dict[str, tuple[str, ...]] = {}
    """Words and phrases that always count as a category."""
    patterns: dict[str, tuple[str, ...]] = {}
    """Regular expressions whose matches count as a category."""
    closed_world: ClosedWorld = ClosedWorld()
    risk: RiskRule = RiskRule()
    account: Account = Account()
    roles: dict[str, Role] = {}

    def rule(self, category: str) -> CategoryRule:
        """Return the rule of a category; one that the policy does not name gets a placeholder and weight 1."""
        return self.categories.get(category, _STRICTEST)

    def tier(self, category: str, role: str | None = None) -> Tier:
        """Return the base tier of a category for a caller; nothing but policy and role goes into it.

        A tier that the category cannot have becomes the next stricter one (`at_least`). Raises UnknownName for a role
        that the policy does not have.
        """
        base = self.rule(category).tier
        if role is None:
            return self.at_least(category, base)
        if role not in self.roles:
            raise UnknownName("role", role, list(self.roles))
        entitled = self.roles[role]
        return self.at_least(category, stricter(entitled.tiers.get(category, base), entitled.least))

    def loosest(self, category: str) -> Tier:
        """Return the loosest tier that a category has for anybody: in the base tiers or for a role."""
        return min((self.tier(category, role) for role in (None, *self.roles)), key=TIERS.index)

    def at_least(self, category: str, tier: Tier) -> Tier:
        """Return the loosest tier of a category that is no looser than `tier`.

        Noisy values need a mechanism, surrogates a pool, and neither is there for what is never swapped (doses, drugs).
        """
        mechanism, swap = self.rule(category).mechanism, categories.category(category).swap
        if tier == "noisy" and not (swap and mechanism in ("laplace", "tree")):
            tier = "surrogate"
        return "placeholder" if tier == "surrogate" and not (swap and mechanism == "surrogate") else tier

    def mechanism(self, category: str) -> mechanisms.Mechanism:
        """Return what draws for a category, at the noisy or the surrogate tier. Raises BadOption, UnknownName."""
        rule = self.rule(category)
        return mechanisms.make(
            rule.mechanism, category, epsilon=rule.epsilon, low=rule.low, high=rule.high, step=rule.step,
            dictionary=rule.dictionary,
        )  # fmt: skip


_STRICTEST = CategoryRule()


def load_policy(name: str | Path) -> Policy:
    """Return a policy by the name of a built-in one (clinic, finance, hr, legal) or from a TOML file.

    Raises: UnknownName, FileMissing, FileFormat (no TOML), PolicyInvalid (field and reason).
    """
    if str(name) in BUILT_IN:
        where = f"{name}.toml"
        text = (files("stillroom.guard") / "policies" / where).read_text(encoding="utf-8")
    else:
        where, path = str(name), Path(name)
        if path.suffix != ".toml":
            raise UnknownName("policy", str(name), [*BUILT_IN, "a file ending in .toml"])
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise FileMissing(path) from error
        except UnicodeDecodeError as error:
            raise FileFormat(path, "it is not UTF-8") from error
    try:
        fields = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise FileFormat(where, f"it is no TOML ({error})") from error
    return read_policy(fields, where)


def read_policy(fields: Mapping[str, Any], where: str = "policy") -> Policy:
    """Return the policy that a mapping holds. Raises PolicyInvalid, which names the field."""
    try:
        policy = Policy.model_validate(dict(fields))
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = ".".join(map(str, first["loc"])) or "the whole"
        raise PolicyInvalid(where, field, first["msg"].removeprefix("Value error, ")) from error
    check_policy(policy, where)
    return policy


def check_policy(policy: Policy, where: str = "policy") -> None:
    """Return if a policy can do what it says; raise PolicyInvalid, which names the field, otherwise.

    What cannot draw, or never may, would become a placeholder later without anybody's knowing why.
    """
    named: list[tuple[str, Iterable[str]]] = [("categories", policy.categories)]
    named += [("words", policy.words), ("patterns", policy.patterns)]
    named += [(f"roles.{role}.tiers", entitled.tiers) for role, entitled in policy.roles.items()]
    named += [(f"roles.{role}.rehydrate", entitled.rehydrate) for role, entitled in policy.roles.items()]
    for field, used in named:
        for name in used:
            if name not in CATEGORIES:
                raise PolicyInvalid(where, f"{field}.{name}", f"no such category; known are {', '.join(CATEGORIES)}")
    for name, rule in policy.categories.items():
        _check_rule(name, rule, where)
        _check_draws(policy, name, where)
    _check_risk(policy.risk, where)
    for role in policy.roles:
        _check_role(policy, role, where)
    for name, phrases in policy.words.items():
        for number, phrase in enumerate(phrases):
            if not words(phrase):
                reason = f"{phrase!r} has no word in it: numbers and signs are found by patterns.{name}"
                raise PolicyInvalid(where, f"words.{name}.{number}", reason)
    for number, phrase in enumerate(policy.formulary):
        if not words(phrase):
            raise PolicyInvalid(where, f"formulary.{number}", f"{phrase!r} has no word in it")
    for name, patterns in policy.patterns.items():
        for number, pattern in enumerate(patterns):
            try:
                re.compile(pattern)
            except re.error as error:
                raise PolicyInvalid(where, f"patterns.{name}.{number}", f"no regular expression ({error})") from error


def _check_rule(name: str, rule: CategoryRule, where: str) -> None:
    _check_tier(name, rule, rule.tier, f"categories.{name}.tier", where)
    if rule.mechanism == "laplace":
        kind = CATEGORIES[name].kind
        dates = isinstance(rule.low, datetime.date)
        if kind == "text" or dates != (kind == "date"):
            allowed = {"text": "no laplace mechanism", "date": "dates as bounds", "number": "numbers as bounds"}[kind]
            raise PolicyInvalid(where, f"categories.{name}.mechanism", f"a {kind} category takes {allowed}")


def _check_draws(policy: Policy, name: str, where: str) -> None:
    epsilon, limit = policy.rule(name).epsilon or 0.0, policy.account.epsilon_per_subject
    if epsilon > limit:
        reason = f"{epsilon:g} is above account.epsilon_per_subject = {limit:g}, so every draw would be refused"
        raise PolicyInvalid(where, f"categories.{name}.epsilon", reason)
    try:
        policy.mechanism(name)
    except (BadOption, UnknownName) as wrong:
        raise PolicyInvalid(where, f"categories.{name}.mechanism", str(wrong).removesuffix(".")) from wrong


def _check_risk(rule: RiskRule, where: str) -> None:
    if rule.surrogate > rule.placeholder:
        reason = f"{rule.surrogate:g} is above risk.placeholder = {rule.placeholder:g}: choose at most that"
        raise PolicyInvalid(where, "risk.surrogate", reason)


def _check_role(policy: Policy, role: str, where: str) -> None:
    for name, tier in policy.roles[role].tiers.items():
        _check_tier(name, policy.rule(name), tier, f"roles.{role}.tiers.{name}", where)
    for name in policy.roles[role].rehydrate:
        if (ends := policy.tier(name, role)) != "placeholder":
            add = f'add roles.{role}.tiers.{name} = "placeholder"'
            reason = f"{name} is {ends} for this role, so no placeholder stands for it: {add}"
            raise PolicyInvalid(where, f"roles.{role}.rehydrate.{name}", reason)


def _check_tier(name: str, rule: CategoryRule, tier: Tier, field: str, where: str) -> None:
    if name in NEVER_RAW and tier == "raw":
        raise PolicyInvalid(where, field, f"{name} is never handed out: choose placeholder")
    if not CATEGORIES[name].swap and tier in ("noisy", "surrogate"):
        raise PolicyInvalid(where, field, f"{name} is never swapped for another value: choose placeholder or raw")
    if tier == "noisy" and rule.mechanism not in ("laplace", "tree"):
        raise PolicyInvalid(where, field, f'the noisy tier needs categories.{name}.mechanism = "laplace" or "tree"')
    if tier == "surrogate" and rule.mechanism != "surrogate":
        raise PolicyInvalid(where, field, f'the surrogate tier needs categories.{name}.mechanism = "surrogate"')
