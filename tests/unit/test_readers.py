"""Collections from files: what is read, and what is refused in which words."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stillroom.documents import content_id
from stillroom.errors import (
    BadLine,
    BadOption,
    FieldMissing,
    FileEmpty,
    FileFormat,
    FileMissing,
    MissingExtra,
    StillroomError,
    UnitMissing,
)
from stillroom.readers import check, read, unit_id

SECRET = "Brunhilde Zwickelmoser"


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def jsonl(path: Path, *rows: object) -> Path:
    return written(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_a_row_becomes_a_document_with_its_unit_and_metadata(tmp_path: Path) -> None:
    row = {"id": 7, "note": "Hm.", "who": "A 1", "ward": 3.0, "ok": True, "none": None, "list": [1]}
    (document,) = read(jsonl(tmp_path / "a.jsonl", row), unit="who")
    assert (document.id, document.text, document.unit) == ("7", "Hm.", "a 1")
    assert document.metadata == {"ward": "3", "ok": "true"}


def test_reading_can_be_repeated(tmp_path: Path) -> None:
    collection = read(jsonl(tmp_path / "a.jsonl", {"text": "a"}, {"text": "b"}))
    assert [d.text for d in collection] == [d.text for d in collection] == ["a", "b"]


def test_without_an_id_the_content_names_a_document_and_it_is_its_own_unit(tmp_path: Path) -> None:
    (document,) = read(jsonl(tmp_path / "a.jsonl", {"text": "a"}))
    assert document.id == document.unit == content_id("a")


def test_the_same_id_twice_is_one_unit(tmp_path: Path) -> None:
    rows = ({"text": "a", "id": 1}, {"text": "b", "id": "1.0"})
    assert {d.unit for d in read(jsonl(tmp_path / "a.jsonl", *rows))} == {"1"}


@pytest.mark.parametrize("field", ["text", "note", "content", "body"])
def test_usual_names_of_the_text_field_are_found(tmp_path: Path, field: str) -> None:
    (document,) = read(jsonl(tmp_path / "a.jsonl", {field: "a", "title": "t"}))
    assert document.text == "a"


@pytest.mark.parametrize(
    "row, there", [({"note": "a", "body": "b"}, "body, note"), ({"story": "a", "id": "1"}, "id, story")]
)
def test_an_unclear_text_field_is_asked_for_by_its_option(tmp_path: Path, row: dict[str, str], there: str) -> None:
    with pytest.raises(FieldMissing, match=rf"line 1: no field 'text' \(fields there: {there}\).*--text-field"):
        read(jsonl(tmp_path / "a.jsonl", row))


@pytest.mark.parametrize("row", [{"Brunhilde": "a"}, {"id": "1", "Brunhilde Zwickel": "a"}, {"id": "1", "4711": "a"}])
def test_keys_that_look_like_no_fields_are_not_shown(tmp_path: Path, row: dict[str, str]) -> None:
    with pytest.raises(FieldMissing, match="fields there: none"):
        read(jsonl(tmp_path / "a.jsonl", row))


def test_the_same_rows_in_any_format_are_the_same_documents(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows = [{"text": 'He said "no",\nthen left; é', "who": "7", "n": "1"}, {"text": "", "who": "8", "n": "2"}]
    line = '"He said ""no"",\nthen left; é"{0}7{0}1\r\n{0}8{0}2\r\n'
    pq.write_table(pa.Table.from_pylist([{**row, "who": float(row["who"])} for row in rows]), tmp_path / "a.parquet")
    paths = [
        jsonl(tmp_path / "a.jsonl", *rows),
        jsonl(tmp_path / "a.json", *rows),
        written(tmp_path / "a.csv", "\ufefftext,who,n\r\n" + line.format(",")),
        written(tmp_path / "b.csv", "text;who;n\n" + line.format(";")),
        written(tmp_path / "a.tsv", "text\twho\tn\n" + line.format("\t")),
        tmp_path / "a.parquet",
    ]
    first, *others = [list(read(path, unit="who")) for path in paths]
    assert [d.unit for d in first] == ["7", "8"]
    assert all(other == first for other in others)


def test_no_text_stops_a_reading(tmp_path: Path) -> None:
    long = "long " * 1_000_000
    lines = [b'\xef\xbb\xbf{"text": ""}', b'{"text": null}', b"", b'{"text": "a\x00\\u0000\xff\xfe\\ud800"}']
    lines += [json.dumps({"text": long}).encode()] + [b'{"text": "twice"}'] * 2
    path = written(tmp_path / "a.jsonl", b"\r\n".join(lines))
    texts = [d.text for d in read(path)]
    assert texts == ["", "", "a\x00\x00\ufffd\ufffd\ufffd", long, "twice", "twice"]
    "".join(texts).encode()


def test_a_csv_cell_may_be_long_broken_and_hold_nul(tmp_path: Path) -> None:
    path = written(tmp_path / "a.csv", b"text\n" + b"x" * 5_000_000 + b"\na\x00\xffb\n")
    assert [d.text[:4] for d in read(path)] == ["xxxx", "a\x00\ufffdb"]


def test_parquet_with_broken_utf8_is_repaired(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    broken = pa.Array.from_buffers(pa.string(), 1, pa.array([b"a\xff"], pa.binary()).buffers())
    pq.write_table(pa.table({"text": broken}), tmp_path / "a.parquet")
    assert [d.text for d in read(tmp_path / "a.parquet")] == ["a\ufffd"]


def test_a_folder_is_read_in_order_and_hidden_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / ".git").mkdir()
    for name, content in (("b.md", b"b"), ("a.TXT", b"\xef\xbb\xbfa\xff"), ("sub/c.txt", b""), (".git/d.txt", b"d")):
        written(tmp_path / name, content)
    written(tmp_path / "e.docx", b"e")
    documents = list(read(tmp_path))
    assert [d.text for d in documents] == ["a\ufffd", "b", ""]
    assert all(d.id == d.unit == content_id(d.text) and not d.metadata for d in documents)


def pdf(*pages: bytes) -> bytes:
    """Return a PDF whose pages have the given content streams."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>".encode(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, page in enumerate(pages):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 99 99] /Contents {5 + 2 * i} 0 R "
            f"/Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        objects.append(b"<< /Length %d >>\nstream\n%s\nendstream" % (len(page), page))
    body, places = b"%PDF-1.4\n", []
    for i, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj\n%s\nendobj\n" % (i, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return body + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % (
        *(size, table, size),
        len(body),
    )


def test_a_pdf_is_the_text_of_its_pages_and_a_broken_one_is_empty(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    page = b"BT /F1 12 Tf 10 10 Td (%s) Tj ET"
    written(tmp_path / "a.pdf", pdf(page % b"First", page % b"Second"))
    written(tmp_path / "b.pdf", b"%PDF-1.4 nonsense")
    assert [d.text for d in read(tmp_path)] == ["First\n\nSecond", ""]


def test_a_broken_pdf_is_read_in_silence(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    written(tmp_path / "a.pdf", pdf(b"BT /F1 12 Tf 078-05-1120 0 Td (hi) Tj ET"))
    written(tmp_path / "b.pdf", b"Anna was seen for HIV")
    shown = subprocess.run(
        [sys.executable, "-c", f"from stillroom.readers import read; list(read({str(tmp_path)!r}))"],
        capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")},
    )  # fmt: skip
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "", "")


def test_a_time_that_python_has_none_for_is_empty(tmp_path: Path) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for column in (pa.array([1, 1700000000000000001], pa.timestamp("ns")), pa.array([1, 10**7], pa.date32())):
        pq.write_table(pa.table({"id": ["a", "b"], "text": ["x", "y"], "born": column}), tmp_path / "a.parquet")
        found = list(read(tmp_path / "a.parquet"))
        assert [d.text for d in found] == ["x", "y"] and "born" not in found[1].metadata


def test_a_pdf_page_that_cannot_be_read_leaves_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pypdf = pytest.importorskip("pypdf")
    page = b"BT /F1 12 Tf 10 10 Td (%s) Tj ET"
    plain = pypdf.PageObject.extract_text

    def stumbling(self: object) -> str:
        text: str = plain(self)
        if text == "Bad":
            raise KeyError(SECRET)
        return text

    monkeypatch.setattr(pypdf.PageObject, "extract_text", stumbling)
    (document,) = read(written(tmp_path / "a.pdf", pdf(page % b"Good", page % b"Bad", page % b"Last")))
    assert document.text == "Good\n\nLast"


@pytest.mark.parametrize(
    ("name", "content", "kind", "says"),
    [
        ("a.jsonl", "", FileEmpty, "no documents"),
        ("a.jsonl", "\n \n", FileEmpty, "no documents"),
        ("a.csv", "text,id\n", FileEmpty, "no documents"),
        ("a.txt", "", FileEmpty, "no documents"),
        ("a.docx", "x", FileFormat, "ends in none of"),
        ("a.json", '[{"text": "x"}]', FileFormat, "one object a line"),
        ("a.jsonl", b"\xff\xfe{\x00", FileFormat, "UTF-16"),
        ("a.csv", b"\xff\xfet\x00", FileFormat, "UTF-16"),
        ("a.parquet", "text", FileFormat, "not a whole Parquet"),
        ("a.jsonl", f'{{"text": "x"}}\n\n{{"text": "{SECRET}"', BadLine, "line 3: not one whole JSON object"),
        ("a.jsonl", f'{{"text": "x"}}\n"{SECRET}"', BadLine, "line 2: not one whole JSON object"),
        ("a.jsonl", "[" * 100_000, FileFormat, "JSON array"),
        ("a.jsonl", '{"text": ' + "[" * 100_000, BadLine, "line 1"),
        ("a.jsonl", f'{{"text": ["{SECRET}"]}}', BadLine, "'text' holds several values"),
        ("a.csv", f'text,n\n"a\nb",1\n{SECRET},2,3\n', BadLine, "line 4: 3 cells where the header names 2"),
        ("a.csv", f"text,n\n{SECRET}\n", BadLine, "line 2: 1 cells"),
        ("a.csv", f'text,n\na,1\n"{SECRET},2\nb,3\n', BadLine, "line 3: a quote is not closed"),
        ("a.csv", "text,text\na,b\n", BadLine, "same name"),
        ("a.csv", f"{SECRET} was ill.,7\nShe left.,8\n", FieldMissing, "fields there: none"),
        ("a.jsonl", f'{{"text": "x"}}\n{{"story": "{SECRET}"}}', FieldMissing, "line 2: .*fields there: none"),
        ("a.jsonl", f'{{"text": "x"}}\n{{"id": 1, "story": "{SECRET}"}}', FieldMissing, "line 2: .*there: id, story"),
    ],
)
def test_a_file_that_is_wrong_is_named_with_its_line_and_never_quoted(
    tmp_path: Path, name: str, content: str | bytes, kind: type[StillroomError], says: str
) -> None:
    with pytest.raises(kind, match=says) as caught:
        check(read(written(tmp_path / name, content)))
    assert name in str(caught.value)
    assert "Brunhilde" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ | (caught.value.__context__ is None)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("value", [None, "", "  ", "\u200b", float("nan")])
def test_every_document_needs_its_unit(tmp_path: Path, value: object) -> None:
    path = jsonl(tmp_path / "a.jsonl", {"text": SECRET, "who": 1}, {"text": SECRET, "who": value})
    with pytest.raises(UnitMissing, match="line 2: the unit field 'who'"):
        check(read(path, unit="who"))
    with pytest.raises(UnitMissing, match="line 2"):
        check(read(jsonl(tmp_path / "a.jsonl", {"text": "x", "who": 1}, {"text": "x"}), unit="who"))


def test_a_named_id_field_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(FieldMissing, match="--id-field"):
        read(jsonl(tmp_path / "a.jsonl", {"text": "x", "id": 1}), id="key")


def test_paths_that_lead_nowhere_and_folders_without_documents_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileMissing):
        read(tmp_path / "none.jsonl")
    with pytest.raises(FileFormat, match="holds no"):
        read(tmp_path)


def test_a_folder_has_no_fields(tmp_path: Path) -> None:
    written(tmp_path / "a.txt", "a")
    with pytest.raises(BadOption, match="--unit"):
        read(tmp_path, unit="who")
    with pytest.raises(BadOption, match="--text-field"):
        read(tmp_path / "a.txt", text="note")


@pytest.mark.parametrize(("name", "module", "extra"), [("a.parquet", "pyarrow", "parquet"), ("a.pdf", "pypdf", "pdf")])
def test_a_missing_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"stillroom\[{extra}\]"):
        read(written(tmp_path / name, "x"))


def test_one_person_is_one_unit_however_the_id_is_written() -> None:
    assert {unit_id(v) for v in ("7", "07", "7.0", "7.00", " 7 ", "\u200b7", "７", "+7")} == {"7"}
    assert {unit_id(v) for v in ("P-7", "p-7", " p-7", "Ｐ-7")} == {"p-7"}
    assert len({unit_id(v) for v in ("7", "70", "-7", "7.5", "a7", "7e0", "a 7")}) == 7


@given(st.text(max_size=20))
def test_spelling_a_unit_id_twice_changes_nothing_more(value: str) -> None:
    assert unit_id(unit_id(value)) == unit_id(value)
