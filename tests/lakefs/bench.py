"""One repository seen from two sides: by a worker through the proxy, and straight."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from perago.errors import NotFoundError
from perago.protocol.values import Commit
from perago.testing import Lab, Run
from tests.faults.proxy import Proxy, Rule
from tests.lakefs_lab import ArrangedLakeFS

BRANCH = "main"
STAGING = "perago-staging-"


class Bench:
    """``lab`` works through the proxy; everything else here asks the server itself."""

    def __init__(
        self, store: ArrangedLakeFS, truth: ArrangedLakeFS, proxy: Proxy, name: str, place: Path
    ) -> None:
        self.store = store
        self.truth = truth
        self.proxy = proxy
        self.repository = name
        self.place = place
        self.lab = Lab(place / "lab", store=store, repository=name)

    def given(self, files: Mapping[str, bytes | str]) -> Commit:
        """Commit files to the target; returns A."""
        return self.lab.commit(files)

    def run(self, task: Callable[..., Any], *rules: Rule, **params: object) -> Run:
        """Run an attempt while rules hold."""
        with self.proxy.during(*rules):
            return self.lab.run(task, params)

    def retry(self, run: Run, *rules: Rule) -> Run:
        """Run the next attempt while rules hold."""
        with self.proxy.during(*rules):
            return run.retry()

    @property
    def head(self) -> Commit:
        return self.truth.head(self.repository, BRANCH)

    def history(self, down_to: str) -> list[Commit]:
        """Walk the target's first parents, newest first, down to and without a commit."""
        found: list[Commit] = []
        for commit in self.truth.history(self.repository, BRANCH):
            if commit.id == down_to:
                return found
            found.append(commit)
        raise AssertionError(f"{down_to} is not in the history of {BRANCH}")

    def files(self, ref: str = BRANCH) -> dict[str, bytes]:
        """Read a whole tree."""
        commit = self.truth.commit(self.repository, ref).id
        return {
            info.key: self.content(info.key, commit)
            for info in self.truth.listing(self.repository, commit, "")
        }

    def content(self, key: str, ref: str = BRANCH) -> bytes:
        with self.truth.open_object(self.repository, ref, key) as opened:
            return opened.read()

    def staging_branches(self) -> list[str]:
        found = self.truth.branches(self.repository, hidden=True)
        return [branch.name for branch in found if branch.name.startswith(STAGING)]

    def attempt_dirs(self) -> list[str]:
        attempt_dirs = self.lab.attempt_dirs
        return (
            [path.name for path in attempt_dirs.iterdir() if path.is_dir()]
            if attempt_dirs.exists()
            else []
        )

    def is_commit(self, ref: str) -> bool:
        try:
            self.truth.commit(self.repository, ref)
        except NotFoundError:
            return False
        return True

    def close(self) -> None:
        self.lab.close()
