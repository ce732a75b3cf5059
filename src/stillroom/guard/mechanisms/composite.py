"""Composites: correlated values of one entity, drawn once and told from that one draw (rule 32)."""

from __future__ import annotations

from datetime import date

from stillroom.guard.mechanisms.surrogate import mail_of, user_of


def part(category: str, drawn: str, *, on: date | None = None) -> str | None:
    """Return what the one draw of a composite says for a value of a category; None where it says nothing of it.

    Functions of the draw alone, so they cost nothing: a mail address and a user name of a drawn name, the age that
    somebody born on the drawn date has. Where it is None a placeholder stands.

    Args:
        drawn: a name, or a date such as 1961-04-30.
        on: public date at which ages are told; None tells none.
    """
    born = _date(drawn)
    if born is None:
        return {"person": drawn, "email": mail_of(drawn), "username": user_of(drawn)}.get(category)
    if category == "date":
        return drawn
    if category == "age" and on is not None:
        return str(_years(born, on))
    return None


def _years(born: date, on: date) -> int:
    return max(0, on.year - born.year - ((on.month, on.day) < (born.month, born.day)))


def _date(drawn: str) -> date | None:
    try:
        return date.fromisoformat(drawn)
    except ValueError:
        return None
