"""A W&B server on this machine, as far as the client needs one; it can also refuse, hang and answer garbage."""

from __future__ import annotations

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "0123456789abcdef0123456789abcdef01234567"


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """A client that went away is no news."""


class FakeWandb:
    """Keeps what it is sent; `mode` is `well`, `refuses`, `hangs` or `garbage`."""

    def __init__(self) -> None:
        self.mode = "well"
        self.runs: dict[str, dict[str, Any]] = {}
        self.requests: list[str] = []
        self.bodies: list[bytes] = []
        self.lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: Any) -> None:
                """Quiet."""

            def do_GET(self) -> None:
                self.respond()

            do_POST = do_PUT = do_GET

            def respond(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(size)
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                with fake.lock:
                    fake.bodies.append(body)
                if fake.mode == "dead":
                    self.close_connection = True
                    return
                if fake.mode == "hangs":
                    fake.released.wait(60)
                    return
                if fake.mode == "refuses":
                    self.answer(b"go away", 503)
                elif fake.mode == "garbage":
                    self.answer(b"<html>{not json", 200)
                else:
                    with fake.lock:
                        answer = fake.reply(self.path, body)
                    self.answer(json.dumps(answer).encode(), 200)

            def answer(self, content: bytes, code: int) -> None:
                try:
                    self.send_response(code)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    pass

        self.released = threading.Event()
        self._handler = Handler
        self._listen(0)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def _listen(self, port: int) -> None:
        self.server = _Server(("127.0.0.1", port), self._handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        """Stop."""
        self.released.set()
        self.server.shutdown()
        self.server.server_close()

    def die(self) -> None:
        """Nobody listens any more, and open connections break."""
        self.mode = "dead"
        self.server.shutdown()
        self.server.server_close()

    def revive(self) -> None:
        """Listen again, at the same address and with what it was sent before."""
        self.mode = "well"
        self._listen(self.server.server_address[1])

    @property
    def environment(self) -> dict[str, str]:
        """What makes the client talk to it."""
        return {"WANDB_BASE_URL": self.url, "WANDB_API_KEY": KEY, "WANDB_ERROR_REPORTING": "false"}

    # ---- what a server says ----------------------------------------------------------------------------------------

    def reply(self, path: str, body: bytes) -> Any:
        """The answer to one request."""
        if path.startswith("/files/"):
            return self._file_stream(path, json.loads(body))
        if path.startswith("/graphql"):
            asked = json.loads(body)
            return {"data": self._graphql(asked.get("query", ""), asked.get("variables") or {})}
        self.requests.append(path)
        return {}

    def run(self, name: str) -> dict[str, Any]:
        """What is known of a run."""
        return self.runs.setdefault(name, {"history": {}, "summary": {}, "config": {}, "finished": None, "files": []})

    def _file_stream(self, path: str, sent: dict[str, Any]) -> dict[str, Any]:
        name = path.split("/")[4]
        run = self.run(name)
        for file, chunk in (sent.get("files") or {}).items():
            if file == "wandb-history.jsonl":
                for number, line in enumerate(chunk["content"]):
                    run["history"][chunk["offset"] + number] = json.loads(line)
            elif file == "wandb-summary.json":
                run["summary"] = json.loads(chunk["content"][-1])
        run["files"] += sent.get("uploaded") or []
        if sent.get("complete"):
            run["finished"] = sent.get("exitcode")
        return {"exitcode": None, "limits": {}}

    def _graphql(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        operation = query.replace("(", " ").replace("{", " ").split()[1] if query else ""
        self.requests.append(operation)
        entity = {"id": "e1", "name": "me"}
        if operation == "RunResumeStatus":
            return {"model": self._resume(given["name"], given["project"]), "entity": entity}
        if "upsertBucket" in query:
            name = given.get("name") or given.get("id")
            new = name not in self.runs
            run = self.run(name)
            run.update({key: given[key] for key in ("displayName", "groupName", "tags", "project") if given.get(key)})
            if given.get("config"):
                run["config"] = json.loads(given["config"])
            bucket = {
                "id": name,
                "name": name,
                "displayName": given.get("displayName") or name,
                "description": "",
                "sweepName": None,
                "config": "{}",
                "historyLineCount": len(run["history"]),
                "project": {"id": "p1", "name": run.get("project", "p"), "entity": entity},
            }
            return {"upsertBucket": {"bucket": bucket, "inserted": new}}
        if "createRunFiles" in query:
            files = [{"name": file, "uploadUrl": f"{self.url}/upload/{file}"} for file in given.get("files", [])]
            return {"createRunFiles": {"runID": "r1", "uploadHeaders": [], "files": files}}
        if "viewer" in query:
            viewer = {**entity, "username": "me", "email": "", "entity": "me", "flags": "{}", "teams": {"edges": []}}
            return {"viewer": viewer, "serverInfo": {"cliVersionInfo": {}, "latestLocalVersionInfo": None}}
        if "ServerFeatures" in operation or "serverInfo" in query:
            return {"serverInfo": {"features": []}}
        return {}

    def _resume(self, name: str, project: str) -> dict[str, Any]:
        model = {"id": "p1", "name": project, "bucket": None}
        run = self.runs.get(name)
        if run is not None:
            history = [run["history"][number] for number in sorted(run["history"])]
            model["bucket"] = {
                "id": name,
                "name": name,
                "displayName": run.get("displayName", name),
                "summaryMetrics": json.dumps(run["summary"]),
                "logLineCount": 0,
                "historyLineCount": len(history),
                "eventsLineCount": 0,
                "historyTail": json.dumps([json.dumps(line) for line in history[-1:]]),
                "eventsTail": "[]",
                "config": json.dumps(run["config"]),
                "tags": run.get("tags") or [],
                "wandbConfig": '{"t": 1}',
            }
        return model


def wait_until(condition: Any, seconds: float = 30.0) -> None:
    """Until it holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)
