"""Write a dossier to a folder: documents, a registry entry, the certificate, and one page to print."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.core.checks import visible
from discreet.core.errors import CannotWrite, FileExists, NotOurs
from discreet.core.files import write_folder
from discreet.dossier.documents import Document, documents
from discreet.dossier.evidence import Evidence
from discreet.dossier.registry import registry_entry
from discreet.report.odds import odds_picture
from discreet.report.pages import element, is_page, page, table

#: The kind of its page, by which we know our own.
PAGE = "dossier"
INDEX, ENTRY, CERTIFICATE = "index.html", "registry.yaml", "certificate.json"
#: The facts of a human, with a comment for each missing one.
FACTS = "facts.toml"


def refuse_folder(out: Path, *, force: bool) -> None:
    """Raise unless a folder is new, empty, or a dossier that may be replaced."""
    if not out.exists():
        if not out.absolute().parent.is_dir():
            raise CannotWrite(path=out, why="its parent folder doesn't exist")
        return
    if not out.is_dir():
        raise NotOurs(path=out, kind="folder")
    ours = is_page(out / INDEX, kind=PAGE)
    if any(out.iterdir()) and not (ours and force):
        raise FileExists(path=out) if ours else NotOurs(path=out, kind="dossier")


def write_dossier(found: Evidence, out: Path, *, force: bool = False) -> list[str]:
    """Write all files of a dossier and return their names.

    Raises:
        FileError: The folder contains other files, or a dossier and `force` isn't set.
    """
    refuse_folder(out, force=force)
    published = None if found.ledger is None else found.ledger.date
    made = documents(found)
    files = {f"{one.slug}.md": visible(one.markdown()) for one in made}
    files[ENTRY] = registry_entry(found.label, found.facts, published=published)
    files[FACTS] = found.facts.to_toml()
    files[INDEX] = visible(_page(found, made))
    if isinstance(found.label.get("certificate"), dict):
        files[CERTIFICATE] = json.dumps(found.label["certificate"], indent=1) + "\n"
    # A folder with files that no dossier has is left as it is: it would be replaced whole.
    write_folder(
        out,
        {name: text.encode("utf-8") for name, text in files.items()},
        replaces=lambda old: {one.name for one in old.iterdir()} <= {*files, CERTIFICATE},
    )
    return sorted(files)


def _page(found: Evidence, made: list[Document]) -> str:
    title = f"Privacy dossier: {found.label['name']}"
    missing = found.facts.missing
    body = [element("h1", title)]
    if missing:
        body.append(element("p", f"Missing human facts: {', '.join(missing)}.", "warning"))
    body.append(odds_picture(found.odds))
    for one in made:
        body += [element("h2", one.title), element("p", one.follows, "quiet")]
        for question, answer in one.answers:
            body += [element("h3", question), element("p", answer)]
    if found.releases:
        body += [
            element("h2", "Releases"),
            table(("release", "mechanism", "noise", "bound"), found.releases, "Releases and their noise"),
        ]
    body += [
        element("h2", "Signature"),
        element("p", f"{found.facts.text('contact')}, for {found.facts.text('controller')}"),
        element("p", "Date and signature: ______________________________"),
    ]
    return page(title, body, kind=PAGE)
