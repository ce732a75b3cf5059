"""Folders of .txt, .md and .pdf files: one file, one document."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from stillroom.documents import Document
from stillroom.errors import FileFormat, MissingExtra

TEXTS, PDF = (".txt", ".md"), ".pdf"


@dataclass(frozen=True)
class Folder:
    """The documents of a folder and its subfolders, or of one file; hidden ones are left out.

    A document is named by its content and is its own unit; file names, titles and authors are not read, as they
    often name a person. Broken UTF-8 is replaced. A PDF page that cannot be read is empty, and so is a PDF that
    cannot be opened: one file never stops the others.

    Raises:
        FileFormat: there is no such file in the folder.
        MissingExtra: there is a PDF, and the extra is not installed.
    """

    path: Path

    def __post_init__(self) -> None:
        files = list(self._files())
        if not files:
            raise FileFormat(self.path, f"the folder holds no {', '.join(TEXTS)} or {PDF} file")
        if any(file.suffix.lower() == PDF for file in files):
            _pypdf()

    def __iter__(self) -> Iterator[Document]:
        for file in sorted(self._files()):
            try:
                content = file.read_bytes()
            except OSError:
                raise FileFormat(self.path, "this user may not open all of it") from None  # a name may be private
            yield Document.of(
                _pdf_text(content) if file.suffix.lower() == PDF else content.decode("utf-8-sig", "replace")
            )

    def _files(self) -> Iterator[Path]:
        if self.path.is_file():
            yield self.path
            return
        for file in self.path.rglob("*"):
            hidden = any(part.startswith(".") for part in file.relative_to(self.path).parts)
            if not hidden and file.suffix.lower() in (*TEXTS, PDF) and file.is_file():
                yield file


def _pdf_text(content: bytes) -> str:
    """Return the text of the pages, parted by empty lines; what cannot be read is empty."""
    pypdf = _pypdf()
    log = logging.getLogger("pypdf")  # and all below it
    before = log.level
    log.setLevel(logging.CRITICAL + 1)  # it quotes what it stumbles over
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                reader = pypdf.PdfReader(BytesIO(content))
                count = len(reader.pages)
            except Exception:  # a broken file raises anything
                return ""
            return "\n\n".join(filter(None, (_page_text(reader, i) for i in range(count))))
    finally:
        log.setLevel(before)


def _page_text(reader: Any, number: int) -> str:
    try:
        text: str = reader.pages[number].extract_text()
    except Exception:  # as above, for one page
        return ""
    return text.encode("utf-8", "replace").decode("utf-8")


def _pypdf() -> Any:
    try:
        import pypdf
    except ImportError:
        raise MissingExtra("reading PDF", "pdf") from None
    return pypdf
