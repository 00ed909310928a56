"""What mkdocs calls while it builds the site: it fills the parts of the reference that are made of the program."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[2]))  # mkdocs loads this file by its path

from tests.docs.llms import llms
from tests.docs.parts import fill
from tests.docs.tables import picture


def on_files(files: Files, config: Any) -> Files:
    """Files that are not tracked: the list of pages for a language model, and the diagram of the tables."""
    files.append(File.generated(config, "llms.txt", content=llms()))
    files.append(File.generated(config, "contribute/tables.svg", content=picture()))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Fills the parts of a page. The `options` of its head are those of each directive that has none of its own."""
    options = "".join(f"      {name}: {json.dumps(value)}\n" for name, value in page.meta.get("options", {}).items())
    text = (
        re.sub(r"^(::: \S+\n)(?!    )", rf"\1    options:\n{options}", markdown, flags=re.MULTILINE)
        if options
        else markdown
    )
    return fill(page.file.src_uri, text)
