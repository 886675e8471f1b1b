"""A collector for OpenTelemetry over HTTP: a real server that parses the protobuf it is sent."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.patience import until


class Collector:
    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def until(self, condition: Callable[[], object]) -> None:
        until(condition, f"more than {[span.name for span in self.spans]}")

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for part in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(attributes(part.resource))
                for scope in part.scope_spans:
                    self.spans.extend(scope.spans)
        elif path == "/v1/metrics":
            for part in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.resources.append(attributes(part.resource))
                for scope in part.scope_metrics:
                    self.metrics.update({metric.name: metric for metric in scope.metrics})


def attributes(holder: Any) -> dict[str, Any]:
    return {
        each.key: getattr(each.value, each.value.WhichOneof("value")) for each in holder.attributes
    }


def _handler(collector: Collector) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            collector.headers.append(dict(self.headers))
            collector.take(self.path, body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of the base class
            pass

    return Handler
