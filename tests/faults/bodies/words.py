"""Bodies that return, raise or measure what is hard to pass on: to a parent, a broker, a log."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from typing import Any

import perago
from tests.faults.bodies.body import EITHER, FAILS, Body, Register, Scene, body

__all__ = ["Body"]
RESULT = r"^(result model|executor|body|input|report|stage|publish|diff)"
BODY = "^body: "


def _nested(depth: int) -> Any:
    nested: Any = []
    for _ in range(depth):
        nested = [nested]
    return nested


class _Cycle(dict[str, Any]):
    pass


# --- results --------------------------------------------------------------------------------------


def returning(name: str, *, quick: bool = False, worker: bool = False) -> Register:
    return body(f"result/{name}", EITHER, RESULT, quick=quick, worker=worker)


@returning("50 MB", worker=True)
def big(scene: Scene) -> object:
    return "x" * 50_000_000


@returning("a million items")
def many(scene: Scene) -> object:
    return list(range(1_000_000))


@returning("lone surrogates", quick=True, worker=True)
def surrogates(scene: Scene) -> object:
    return {"\udce9": "caf\udce9 \ud800"}


@returning("nested 600 deep", worker=True)
def nested(scene: Scene) -> object:
    return _nested(600)


@returning("nested 100,000 deep", worker=True)
def nested_deep(scene: Scene) -> object:
    return _nested(100_000)


@returning("contains itself")
def cycle(scene: Scene) -> object:
    found = _Cycle()
    found["me"] = found
    return found


@returning("not a number, infinite")
def not_a_number(scene: Scene) -> object:
    return [math.nan, math.inf, -math.inf]


@returning("number of 10,000 digits", worker=True)
def huge_number(scene: Scene) -> object:
    return 10**10_000


@returning("NUL and control characters")
def control(scene: Scene) -> object:
    return "a\x00b\x1b[31m\u202e\u2028"


@returning("key that is no text")
def odd_key(scene: Scene) -> object:
    return {(1, 2): 3, None: 4, 5: 6}


@returning("object that cannot be written down")
def opaque(scene: Scene) -> object:
    return object()


@returning("bytes that are no text")
def raw(scene: Scene) -> object:
    return b"\xff\xfe"


@returning("open file")
def open_file(scene: Scene) -> object:
    return (scene.workspace / "in.txt").open()


@returning("generator that raises")
def generator(scene: Scene) -> object:
    def items() -> Any:
        yield 1
        raise RuntimeError("enough")

    return items()


@returning("coroutine")
def coroutine(scene: Scene) -> object:
    return asyncio.sleep(0)


class _Sly(str):
    __slots__ = ()

    def __str__(self) -> str:
        raise RuntimeError("no words")

    def __repr__(self) -> str:
        raise RuntimeError("no words")

    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


@returning("text that raises when it is shown")
def sly(scene: Scene) -> object:
    return _Sly("sly")


# --- exceptions -----------------------------------------------------------------------------------


def raising(
    name: str, reason: str = BODY, *, quick: bool = False, worker: bool = False
) -> Register:
    return body(f"exception/{name}", FAILS, reason, quick=quick, worker=worker)


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise KeyboardInterrupt

    __repr__ = __str__


class NotText(Exception):
    def __str__(self) -> str:
        return None  # type: ignore[return-value]  # noqa: PLE0307


class NoPickle(Exception):
    def __reduce__(self) -> Any:
        raise RuntimeError("no pickle")


class BadPickle(Exception):
    """Its copy cannot be made: the arguments are not those it was made with."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("both are needed")


class Evil(Exception):
    """Whoever unpickles it ends."""

    def __reduce__(self) -> Any:
        return os._exit, (9,)


class Own(BaseException):
    pass


@raising("__str__ raises", "^body: Unspeakable")
def unspeakable(scene: Scene) -> None:
    raise Unspeakable


@raising("__str__ interrupts", "^(body|executor)")
def unprintable(scene: Scene) -> None:
    raise Unprintable


@raising("__str__ gives no text")
def not_text(scene: Scene) -> None:
    raise NotText


@raising("cannot be pickled")
def no_pickle(scene: Scene) -> None:
    raise NoPickle("words")


@raising("cannot be unpickled", worker=True)
def bad_pickle(scene: Scene) -> None:
    raise BadPickle(1, 2)


@raising("ends who unpickles it", worker=True)
def evil(scene: Scene) -> None:
    raise Evil("words")


@raising("lone surrogates", worker=True)
def raised_surrogates(scene: Scene) -> None:
    raise RuntimeError("caf\udce9 \ud800")


@raising("file name that is not UTF-8", "^body: FileNotFoundError")
def raised_name(scene: Scene) -> None:
    open(os.fsencode(scene.workspace) + b"/caf\xe9")


@raising("10 MB of words", worker=True)
def raised_big(scene: Scene) -> None:
    raise RuntimeError("x" * 10_000_000)


@raising("words that forge lines", r"^body: RuntimeError")
def raised_lines(scene: Scene) -> None:
    raise RuntimeError('a\r\n{"level": "INFO"}\x1b[2J\x00\u2028b')


@raising(
    "KeyboardInterrupt",
    "^body: TaskFailed: the body raised KeyboardInterrupt",
    quick=True,
    worker=True,
)
def keyboard(scene: Scene) -> None:
    raise KeyboardInterrupt


@raising("GeneratorExit", "^body: TaskFailed: the body raised GeneratorExit")
def generator_exit(scene: Scene) -> None:
    raise GeneratorExit


@raising("CancelledError", "^body: TaskFailed: the body raised CancelledError")
def cancelled(scene: Scene) -> None:
    raise asyncio.CancelledError


@raising("BaseException of the author", "^body: TaskFailed: the body raised Own.*words")
def own(scene: Scene) -> None:
    raise Own("words")


@raising("group of groups", "^body: ExceptionGroup|^body: .*RecursionError")
def group(scene: Scene) -> None:
    error: Exception = ValueError("innermost")
    for _ in range(2_000):
        error = ExceptionGroup("group", [error])
    raise error


@raising("causes 5,000 deep", "^body: ValueError")
def causes(scene: Scene) -> None:
    error = ValueError("innermost")
    for number in range(5_000):
        outer = ValueError(f"outer {number}")
        outer.__cause__ = error
        error = outer
    raise error


@raising("causes in a circle")
def circle(scene: Scene) -> None:
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    raise one


@raising("notes that are no text")
def notes(scene: Scene) -> None:
    error = ValueError("noted")
    error.__notes__ = [object(), 3]  # type: ignore[list-item]
    raise error


@raising("notes without end")
def many_notes(scene: Scene) -> None:
    error = ValueError("noted")
    for number in range(100_000):
        error.add_note(f"note {number}")
    raise error


@raising("traceback 900 frames deep")
def deep_traceback(scene: Scene) -> None:
    def down(n: int) -> None:
        if n == 0:
            raise ValueError("bottom")
        down(n - 1)

    down(sys.getrecursionlimit() - 150)


@raising("TaskFailed with odd words", "^body: TaskFailed")
def task_failed(scene: Scene) -> None:
    raise perago.TaskFailed("caf\udce9\n\x00")


@raising("StopIteration", "^body: StopIteration")
def stop_iteration(scene: Scene) -> None:
    raise StopIteration


# --- what is measured and printed -----------------------------------------------------------------


class Label(str):
    """A text that cannot be copied to another process, or that ends it."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return os._exit, (9,)


class LocalLabel(str):
    __slots__ = ()

    def __reduce__(self) -> Any:
        return _no_such, ("x",)


def _no_such(_: str) -> str:
    raise RuntimeError("cannot be made again")


def measuring(name: str, *, quick: bool = False) -> Register:
    return body(f"metric/{name}", EITHER, BODY, quick=quick, worker=True)


@measuring("label that ends who unpickles it", quick=True)
def evil_label(scene: Scene) -> None:
    scene.metrics.gauge("g", 1.0, labels={"l": Label("x")})


@measuring("label that does not unpickle")
def bad_label(scene: Scene) -> None:
    scene.metrics.gauge("g", 1.0, labels={"l": LocalLabel("x")})


@measuring("label that does not pickle")
def no_label(scene: Scene) -> None:
    scene.metrics.histogram("h", 1.0, labels={"l": lambda: None})


@measuring("label of lone surrogates, name of 1 MB")
def odd_label(scene: Scene) -> None:
    scene.metrics.gauge("g" * 1_000_000, math.nan, labels={"\ud800": "\udce9"})


@measuring("a hundred thousand labels")
def many_labels(scene: Scene) -> None:
    for number in range(100_000):
        scene.metrics.gauge("g", 1.0, labels={"l": str(number)})


@measuring("value that is nested deep")
def deep_label(scene: Scene) -> None:
    scene.metrics.gauge("g", 1.0, labels={"l": _nested(600)})


@body("output/20 MB in one line", worker=True)
def one_line(scene: Scene) -> None:
    sys.stdout.write("x" * 20_000_000)


@body("output/bytes that are no text")
def bad_output(scene: Scene) -> None:
    os.write(1, bytes(range(256)) * 1000)
    os.write(2, b"\x1b]0;title\x07\xff\n")


@body("output/a hundred thousand lines", worker=True)
def many_lines(scene: Scene) -> None:
    for number in range(100_000):
        sys.stdout.write(f"line {number}\n")


# --- keys -----------------------------------------------------------------------------------------


def _secret(scene: Scene) -> str:
    """A key of this worker that the author got hold of."""
    return (scene.scratch / "secret").read_text()


@body("secret/raised", FAILS, BODY, quick=True, worker=True)
def secret_raised(scene: Scene) -> None:
    raise RuntimeError(f"403 for {_secret(scene)}")


@body("secret/returned", EITHER, RESULT, worker=True)
def secret_returned(scene: Scene) -> object:
    return {"configuration": {"key": _secret(scene)}, _secret(scene): 1}


@body("secret/printed", worker=True)
def secret_printed(scene: Scene) -> None:
    sys.stdout.write(f"using {_secret(scene)}\n")
    os.write(2, _secret(scene).encode() + b"\n")


@body("secret/measured", EITHER, BODY, worker=True)
def secret_measured(scene: Scene) -> None:
    scene.metrics.gauge("g", 1.0, labels={"key": _secret(scene)})


@body("secret/cause of another exception", FAILS, BODY)
def secret_cause(scene: Scene) -> None:
    try:
        raise KeyError(_secret(scene))
    except KeyError as error:
        raise RuntimeError("no access") from error


@body("secret/name of a file that is refused", FAILS, "^diff: ")
def secret_name(scene: Scene) -> None:
    (scene.workspace / f"link-{_secret(scene)}").symlink_to("in.txt")
