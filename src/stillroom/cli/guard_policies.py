"""stillroom guard policy: what a policy says, and whether one of your own is sound."""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from stillroom.guard.categories import CATEGORIES
from stillroom.guard.policy import Policy, load_policy

policies = typer.Typer(help="Show a policy, or check one of your own.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME|FILE", help="clinic, finance, hr, legal, or a TOML file.")]


@policies.command()
def show(name: Name, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show what a policy does with each category, for whom, and what it may cost."""
    policy = load_policy(name)
    if as_json:
        typer.echo(json.dumps(policy.model_dump(mode="json"), ensure_ascii=False, indent=2))
        return
    table = Table(title=f"{policy.name}, version {policy.version}")
    for column in ("category", "tier", "mechanism", "ε", "bounds or dictionary", "weight", "composite", *policy.roles):
        table.add_column(column, overflow="fold")
    for category in sorted(CATEGORIES):
        if CATEGORIES[category].private:
            table.add_row(*_row(policy, category))
    console = Console(highlight=False)
    console.print(table)
    account, risk = policy.account, policy.risk
    console.print(
        f"account: ε = {account.epsilon_per_subject:g} per subject, {account.quota_per_caller:g} per caller\n"
        f"risk: surrogates from {risk.surrogate:g}, placeholders from {risk.placeholder:g}"
        f"{'' if risk.raw else '; what is raw stays so'}"
    )
    for role, entitled in policy.roles.items():
        if entitled.rehydrate:
            console.print(f"{role}: gets back {', '.join(entitled.rehydrate)}")


@policies.command()
def check(name: Name) -> None:
    """Check a policy, every mechanism included; exit code 2 names the field that is wrong."""
    policy = load_policy(name)
    typer.echo(f"{policy.name}, version {policy.version}: {len(policy.categories)} categories, all sound")


def _row(policy: Policy, category: str) -> list[str]:
    rule = policy.rule(category)
    bounds = rule.dictionary or ("" if rule.low is None else f"{rule.low} … {rule.high}, step {rule.step:g}")
    return [
        category,
        policy.tier(category),
        rule.mechanism,
        f"{rule.epsilon:g}" if policy.tier(category) == "noisy" and rule.epsilon else "",
        bounds,
        f"{rule.weight:g}",
        rule.composite or "",
        *(
            "=" if policy.tier(category, role) == policy.tier(category) else policy.tier(category, role)
            for role in policy.roles
        ),
    ]
