"""Taking a Spring Boot jar apart: started from plain jars, Conductor needs a third less time.

Every file is a member of the jar as it is, so the result can be pinned like the jar itself.
"""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

_CLASSES = "BOOT-INF/classes/"
_LIBRARIES = "BOOT-INF/lib/"
_INDEX = "BOOT-INF/classpath.idx"
# What the program consists of; the rest is the loader that is no longer needed.
_OWN = re.compile(rf"{_CLASSES}(.*[^/])|{_LIBRARIES}[^/]+\.jar|META-INF/[^/]+\.(?:properties|json)")


def unpack(boot_jar: Path, directory: Path) -> None:
    """Write the classes, the libraries, and the order in which they are to be searched."""
    with zipfile.ZipFile(boot_jar) as boot:
        for member in boot.infolist():
            if _OWN.fullmatch(member.filename):
                target = directory / _place(member.filename)
                target.parent.mkdir(parents=True, exist_ok=True)
                with boot.open(member) as source, target.open("wb") as file:
                    shutil.copyfileobj(source, file, 1 << 20)
        (directory / "classpath.idx").write_bytes(boot.read(_INDEX))


def class_path(directory: Path) -> str:
    """Return the places of an unpacked jar in the order the jar itself would search them."""
    index = (directory / "classpath.idx").read_text(encoding="utf-8")
    libraries = re.findall(rf'"{_LIBRARIES}([^"/]+)"', index)
    places = [directory / "classes", *(directory / "lib" / name for name in libraries)]
    return ":".join(map(str, places))


def _place(member: str) -> str:
    """Lay out members; descriptions at the root of the jar belong to the classes."""
    if member.startswith(_LIBRARIES):
        return "lib/" + member.removeprefix(_LIBRARIES)
    return "classes/" + member.removeprefix(_CLASSES)
