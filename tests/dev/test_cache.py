"""The cache gives what was recorded, or makes it again; never something else."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from perago.dev.builds import Builder
from perago.dev.cache import Cache, CacheRecord, flaw, sha256
from perago.dev.errors import BuildFailedError, WrongContentError
from perago.dev.progress import NoProgress
from perago.dev.recipes import JarRecipe
from perago.dev.tools import Tools
from perago.dev.unpacking import class_path, unpack
from tests.patience import LIMIT

CONTENT = b"a small program"
RECIPE = JarRecipe(
    name="small",
    version="1.0",
    coordinate="org.example:small:jar:boot:1.0",
    size=11,
    sha256=hashlib.sha256(b"a small jar").hexdigest(),
    unpacked_sha256=hashlib.sha256(CONTENT).hexdigest(),
)


class Heard(NoProgress):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def maker(made: list[Path]) -> Callable[[Path], None]:
    def make(directory: Path) -> None:
        (directory / "small").write_bytes(CONTENT)
        made.append(directory)

    return make


def test_it_lies_where_the_user_keeps_caches() -> None:
    assert Cache.of({"XDG_CACHE_HOME": "/x"}).root == Path("/x/perago/servers")
    assert Cache.of({"PERAGO_DEV_CACHE": "/y", "XDG_CACHE_HOME": "/x"}).root == Path("/y")
    assert Cache.of({"HOME": "/home/u"}).root == Path("/home/u/.cache/perago/servers")


def test_what_is_there_is_not_made_again(cache: Cache) -> None:
    made: list[Path] = []
    first = cache.provide(RECIPE, maker(made), NoProgress())
    assert cache.provide(RECIPE, maker(made), NoProgress()) == first
    assert len(made) == 1


def test_a_directory_that_somebody_else_made_is_not_replaced(cache: Cache) -> None:
    mine = cache.place(RECIPE) / "thesis.tex"
    mine.parent.mkdir(parents=True)
    mine.write_text("precious")
    with pytest.raises(BuildFailedError, match=r"did not make it.*PERAGO_DEV_CACHE"):
        cache.provide(RECIPE, maker([]), NoProgress())
    assert mine.read_text() == "precious"


def test_changed_bytes_are_refused_and_made_again(cache: Cache) -> None:
    made: list[Path] = []
    heard = Heard()
    file = cache.provide(RECIPE, maker(made), heard) / "small"
    file.write_bytes(b"something evil")
    assert "SHA-256" in flaw(cache.place(RECIPE), RECIPE)
    assert (cache.provide(RECIPE, maker(made), heard) / "small").read_bytes() == CONTENT
    assert len(made) == 2
    assert "SHA-256" in heard.notes[0]
    assert not (cache.place(RECIPE) / ".replaced").exists()


def test_changed_bytes_are_refused_though_the_record_was_changed_too(cache: Cache) -> None:
    place = cache.provide(RECIPE, maker([]), NoProgress())
    evil = b"something evil"
    (place / "small").write_bytes(evil)
    recorded = {"small": hashlib.sha256(evil).hexdigest()}
    entry = CacheRecord(fingerprint=RECIPE.fingerprint, seconds=1, sha256=recorded)
    (place / "entry.json").write_text(entry.model_dump_json())
    assert "SHA-256" in flaw(place, RECIPE)


def test_what_another_recipe_made_is_made_again(cache: Cache) -> None:
    place = cache.provide(RECIPE, maker([]), NoProgress())
    (place / "entry.json").write_text('{"fingerprint": "old", "seconds": 1, "sha256": {}}')
    assert flaw(place, RECIPE) == "was made by another recipe"


def test_an_interrupted_build_leaves_nothing(cache: Cache) -> None:
    def make(directory: Path) -> None:
        (directory / "small").write_bytes(b"half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.provide(RECIPE, make, NoProgress())
    assert flaw(cache.place(RECIPE), RECIPE) == "is not complete"
    assert {path.name for path in cache.root.iterdir()} == {"locks"}


def test_a_jar_with_other_bytes_than_pinned_is_refused(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = [sys.executable, "-c", "import sys; open(sys.argv[2], 'w').write('evil')"]
    monkeypatch.setattr(Tools, "maven_artifact", lambda _: client)
    builder = Builder(cache, Tools(cache, NoProgress(), {"PATH": ""}), NoProgress())
    with pytest.raises(WrongContentError, match=r"instead of [0-9a-f]{64}; check the proxy"):
        cache.provide(RECIPE, lambda directory: builder.make(RECIPE, directory), NoProgress())
    assert not cache.place(RECIPE).exists()


def test_a_directory_is_digested_by_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b").write_text("1")
    first = sha256(tmp_path)
    (tmp_path / "a" / "b").rename(tmp_path / "a" / "c")
    second = sha256(tmp_path)
    (tmp_path / "a" / "c").write_text("2")
    assert len({first, second, sha256(tmp_path)}) == 3


def test_a_boot_jar_is_unpacked_to_what_its_program_needs(tmp_path: Path) -> None:
    index = '- "BOOT-INF/lib/z.jar"\n- "BOOT-INF/lib/a.jar"\n'
    with zipfile.ZipFile(tmp_path / "boot.jar", "w") as jar:
        for name, text in {
            "META-INF/MANIFEST.MF": "Start-Class: x.Main\n",
            "META-INF/build-info.properties": "build",
            "META-INF/services/loader": "the loader's",
            "org/springframework/boot/loader/Launcher.class": "the loader",
            "BOOT-INF/classpath.idx": index,
            "BOOT-INF/classes/x/": "",
            "BOOT-INF/classes/x/Main.class": "main",
            "BOOT-INF/lib/a.jar": "a",
            "BOOT-INF/lib/z.jar": "z",
        }.items():
            jar.writestr(name, text)
    place = tmp_path / "out"
    unpack(tmp_path / "boot.jar", place)
    assert {str(f.relative_to(place)) for f in place.rglob("*") if f.is_file()} == {
        "classpath.idx",
        "classes/META-INF/build-info.properties",
        "classes/x/Main.class",
        "lib/a.jar",
        "lib/z.jar",
    }
    assert class_path(place) == f"{place}/classes:{place}/lib/z.jar:{place}/lib/a.jar"


RACER = """
import sys, time
from pathlib import Path
from perago.dev.cache import Cache
from perago.dev.progress import NoProgress
from perago.dev.recipes import JarRecipe
root, seen, pin = sys.argv[1:]
def make(directory):
    with open(seen, "a") as file:
        file.write("made\\n")
    time.sleep(0.5)
    (directory / "small").write_bytes(b"a small program")
recipe = JarRecipe("small", "1.0", "x", 11, "", pin)
print(Cache(Path(root)).provide(recipe, make, NoProgress()))
"""


def test_two_processes_do_not_make_the_same_thing_twice(cache: Cache, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    words = [sys.executable, "-c", RACER, str(cache.root), str(seen), RECIPE.unpacked_sha256]
    racers = [subprocess.Popen(words, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    places = {racer.communicate(timeout=LIMIT)[0].strip() for racer in racers}
    assert places == {str(cache.place(RECIPE))}
    assert seen.read_text() == "made\n"
