"""stillroom verify: whether a release is what its certificate says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from stillroom.release.verify import Report
from stillroom.release.verify import verify as check

app = typer.Typer()


@app.command("verify")
def verify(
    release: Annotated[Path, typer.Argument(metavar="RELEASE", help="The release folder.")],
    ledger: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also look the run up in the ledger of its population.")
    ] = None,
    ledger_head: Annotated[
        str | None, typer.Option(metavar="HASH", help="The ledger's head at the reservation, known from elsewhere.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Check the arithmetic and the bytes of a release; exit code 4 when they do not fit."""
    if ledger is None:
        report = check(release, ledger_head=ledger_head)
    else:
        from stillroom.privacy.ledger import Ledger

        with Ledger.open(ledger) as book:
            report = check(release, ledger=book, ledger_head=ledger_head)
    typer.echo(_json(report) if as_json else _text(report))


def _text(report: Report) -> str:
    certificate = report.certificate
    return "\n".join(
        [
            f"{report.release.path} is what its certificate says.",
            "",
            certificate.meaning,
            f"ε = {certificate.epsilon:.4g} at δ = {certificate.delta:g} (ρ = {certificate.rho:.4g}, "
            f"δ_ps = {certificate.delta_ps:.3g}); neighbouring collections: {certificate.relation}.",
            "",
            "Checked:",
            *(f"  - {line}" for line in report.checked),
            "Assumed:",
            *(f"  - {line}" for line in certificate.assumptions or ("nothing more",)),
            "No such check can prove:",
            *(f"  - {line}" for line in report.cannot_prove),
        ]
    )


def _json(report: Report) -> str:
    certificate = report.certificate
    shown = {
        "release": str(report.release.path),
        "ok": True,
        "run": certificate.run,
        "guarantee": certificate.guarantee,
        "meaning": certificate.meaning,
        "relation": certificate.relation,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "rho": certificate.rho,
        "delta_ps": certificate.delta_ps,
        "checked": report.checked,
        "assumptions": certificate.assumptions,
        "cannot_prove": report.cannot_prove,
    }
    return json.dumps(shown, ensure_ascii=False, indent=2)
