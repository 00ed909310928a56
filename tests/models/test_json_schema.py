"""The JSON schema of the models, from which a service makes its OpenAPI page."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field, TypeAdapter

import chatledger
from chatledger import models
from chatledger.models import ChatMessage, Thread
from chatledger.models.base import Model
from chatledger.models.outputs import Output, ThreadAgent

PUBLIC = [
    Output,
    ThreadAgent,
    *(kind for name in models.__all__ if isinstance(kind := getattr(models, name), type) and issubclass(kind, Model)),
]
PACKAGE = Path(chatledger.__file__).parent
SHOW = "from chatledger.models import Violation as V; print(V.model_json_schema()['properties']['rule'])"


def undescribed(schema: dict[str, Any]) -> list[str]:
    return [name for name, field in schema["properties"].items() if not field.get("description")]


@pytest.mark.parametrize("model", PUBLIC, ids=lambda model: model.__name__)
def test_each_field_of_a_model_has_a_description(model: type[Model]) -> None:
    schema = model.model_json_schema()
    found = {name: undescribed(one) for name, one in {model.__name__: schema, **schema.get("$defs", {})}.items()}
    assert {name: fields for name, fields in found.items() if fields} == {}
    assert schema["description"]


def test_the_schemas_of_a_service_are_described() -> None:
    schema = TypeAdapter(list[Thread | ChatMessage]).json_schema()
    assert [undescribed(one) for one in schema["$defs"].values()] == [[]] * len(schema["$defs"])


def test_a_subclass_has_the_descriptions_of_its_base_and_its_own() -> None:
    class Extended(Thread):
        color: str
        """The color of the thread in a list."""
        size: int

    fields = Extended.model_json_schema()["properties"]
    assert fields["color"]["description"] == "The color of the thread in a list."
    assert "description" not in fields["size"]
    assert fields["title"]["description"] == "A title for people."


def test_a_field_may_describe_itself() -> None:
    class Titled(Thread):
        title: str | None = Field(description="As it is shown.", default=None)

    assert Titled.model_json_schema()["properties"]["title"]["description"] == "As it is shown."


def run(*command: str, path: Path) -> str:
    done = subprocess.run(
        [sys.executable, *command, "-c", SHOW],
        env={"PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def test_the_models_work_without_docstrings() -> None:
    assert "R1 to R13" in run("-OO", path=PACKAGE.parent)


def test_the_models_work_from_a_zip_file(tmp_path: Path) -> None:
    packed = tmp_path / "sources.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        for source in PACKAGE.rglob("*.py"):
            archive.write(source, source.relative_to(PACKAGE.parent))
    assert "R1 to R13" in run(path=packed)


def test_the_models_work_without_their_sources(tmp_path: Path) -> None:
    import compileall
    import shutil

    target = tmp_path / "chatledger"
    shutil.copytree(PACKAGE, target, ignore=shutil.ignore_patterns("__pycache__", "cli", "formats", "adapters"))
    compileall.compile_dir(target, quiet=1, legacy=True)
    for source in target.rglob("*.py"):
        source.unlink()
    assert "'title': 'Rule'" in run(path=tmp_path)
