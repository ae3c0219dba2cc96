"""Who may ask the studio: hosts, origins, tokens, and the headers of every answer; asked by a program that may lie."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from made_runs import finished_run
from studio_process import Studio
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

FOREIGN = ["evil.example", "127.0.0.1.evil.example", "localhost:1"]


@pytest.mark.parametrize("host", FOREIGN)
@pytest.mark.parametrize("method", ["GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_another_host_is_refused(studio: Studio, host: str, method: str) -> None:
    """A name that was rebound to this machine reads nothing."""
    status, _, _ = studio.request("/api/runs", method=method, Host=host)
    assert status == 421


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/runs"), ("POST", "/api/train"), ("GET", "/")])
def test_another_origin_is_refused(studio: Studio, origin: str, method: str, path: str) -> None:
    body = {"reference": "CartPole-v1:ppo"} if method == "POST" else None
    status, _, _ = studio.request(path, body, method=method, Origin=origin)
    assert status == 403
    assert len(studio.get("/api/runs")["runs"]) == 2


def test_our_own_origin_is_welcome(studio: Studio) -> None:
    assert studio.request("/api/runs", Origin=studio.address)[0] == 200
    port = studio.address.rpartition(":")[2]
    assert studio.request("/api/runs", Host=f"localhost:{port}", Origin=f"http://localhost:{port}")[0] == 200


def test_a_form_of_another_site_changes_nothing(studio: Studio) -> None:
    """Browsers mark what another site sends, even where no origin comes along."""
    for site in ("cross-site", "same-site", "none"):
        status, _, _ = studio.request("/api/train", {"reference": "CartPole-v1:ppo"}, Sec_Fetch_Site=site)
        assert status == 403
    assert studio.request("/api/runs", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="no-cors")[0] == 403
    assert studio.request("/", Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate")[0] == 200


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example"}])
def test_a_websocket_from_elsewhere_is_refused(studio: Studio, headers: dict[str, str]) -> None:
    address = studio.address.replace("http", "ws") + "/live"
    if "Host" in headers:
        assert b" 101 " not in _handshake(studio, headers["Host"])
        return
    with pytest.raises(InvalidStatus):
        connect(address, origin=headers["Origin"])


def _handshake(studio: Studio, host: str) -> bytes:
    return _said(studio, "GET /live", f"Host: {host}", *UPGRADE)


UPGRADE = (
    "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
)  # fmt: skip


def _said(studio: Studio, line: str, *headers: str) -> bytes:
    """The beginning of what is answered to a request as it is written here."""
    port = int(studio.address.rpartition(":")[2])
    lines = [f"{line} HTTP/1.1", *(header.replace("OWN", f"127.0.0.1:{port}") for header in headers)]
    with socket.create_connection(("127.0.0.1", port), timeout=10) as raw:
        raw.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        return raw.recv(100)


@pytest.mark.parametrize(
    ("line", "headers", "status"),
    [
        ("GET /api/about", ["Host: OWN"], 200),
        ("GET /api/runs", [], 421),
        ("GET /api/runs", ["Host: OWN", "Host: evil.example"], 400),
        ("GET /api/runs", ["Host: evil.example", "Host: OWN"], 400),
        ("GET /api/runs", ["Host: evil.example", "X-Forwarded-Host: OWN"], 421),
        ("GET http://OWN/api/runs", ["Host: evil.example"], 421),
        ("POST /api/train", ["Host: OWN", "Origin: http://OWN", "Origin: http://evil.example", "Content-Length: 0"], 400),
        ("POST /api/runs", ["Host: OWN", "Content-Length: 4", "Transfer-Encoding: chunked"], 400),
        ("GET /live", ["Host: OWN", "Origin: http://evil.example", *UPGRADE], 403),
        ("GET /play/session", ["Host: OWN", "Origin: http://localhost:1", *UPGRADE], 403),
        ("GET /live", [*UPGRADE], 403),
    ],
)  # fmt: skip
def test_what_no_browser_would_send_is_refused_too(studio: Studio, line: str, headers: list[str], status: int) -> None:
    assert _said(studio, line, *headers).startswith(f"HTTP/1.1 {status} ".encode())


def test_a_websocket_of_ours_gets_the_runs(studio: Studio) -> None:
    with connect(studio.address.replace("http", "ws") + "/live", origin=studio.address) as socket_:
        socket_.send(json.dumps({"runs": True}))
        news = json.loads(socket_.recv(timeout=20))
    assert news["runs"]["complete"] and len(news["runs"]["changed"]) == 2


@pytest.mark.parametrize("path", ["/", "/api/runs", "/web/app.js", "/api/nothing", "/files/abcde/report.html"])
def test_every_answer_forbids_inline_script_and_other_sites(studio: Studio, path: str) -> None:
    _, _, headers = studio.request(path)
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe-inline" not in policy.split("style-src")[0]
    assert "script-src 'self';" in policy and headers["x-content-type-options"] == "nosniff"


def test_the_page_holds_no_inline_script_or_foreign_address() -> None:
    from gymnast.studio.files import WEB

    for path in WEB.rglob("*"):
        if path.suffix not in (".js", ".css", ".html") or "vendor" in path.parts:
            continue
        text = path.read_text()
        assert "http://" not in text.replace("http://www.w3.org/", "") and "https://" not in text, path
        assert "innerHTML" not in text and "dangerouslySetInnerHTML" not in text and "eval(" not in text, path
    assert "<script>" not in (WEB / "index.html").read_text()


@pytest.mark.parametrize(
    "path",
    [
        "/files/{run}/videos/..%2f..%2fconfig.json", "/files/{run}/videos/%2e%2e/config.json", "/files/..%2f{run}/log.txt",
        "/web/../app.py", "/web/..%2fapp.py", "/web/.hidden", "/files/{run}/config.json", "/web/%2e%2e/%2e%2e/cli/app.py",
    ],
)  # fmt: skip
def test_nothing_but_artefacts_is_served(studio: Studio, path: str) -> None:
    run = studio.get("/api/runs")["runs"][0]["id"]
    raw = path.format(run=run)
    status, found, _ = studio.request(raw)
    assert status in (400, 404), found


def test_a_link_in_a_run_is_not_followed(studios: Callable[..., Studio], tmp_path: Path) -> None:
    """An imported run could name any file of this machine."""
    run = finished_run(tmp_path / "runs", 9.0)
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    (run.folder / "report.html").symlink_to(secret)
    (run.videos / "a.mp4").symlink_to(secret)
    run.log_path.unlink()
    run.log_path.symlink_to(secret)
    one = studios(tmp_path / "runs")
    for path in (f"/files/{run.id}/report.html", f"/files/{run.id}/videos/a.mp4", f"/files/{run.id}/log.txt"):
        assert one.request(path)[0] == 404
    assert "secret" not in json.dumps(one.get(f"/api/runs/{run.id}/log"))


def test_beyond_this_machine_a_token_is_asked_for(studios: Callable[..., Studio], tmp_path: Path) -> None:
    finished_run(tmp_path / "runs", 9.0)
    one = studios(tmp_path / "runs", "--host", "0.0.0.0")
    assert one.token and len(one.token) > 20
    assert one.request("/api/runs")[0] == 401
    assert one.request("/api/runs", Authorization="Bearer wrong")[0] == 401
    assert one.request("/api/runs", Authorization=f"Bearer {one.token}")[0] == 200
    assert one.request("/?token=wrong")[0] == 401
    # The cookie that the address gives lets further requests in, also the handshake.
    assert one.request("/api/runs", Cookie=f"gymnast_studio={one.token}")[0] == 200
    with pytest.raises(InvalidStatus):
        connect(one.address.replace("http", "ws") + "/live")


def test_a_large_or_broken_request_is_a_sentence(studio: Studio) -> None:
    status, found, _ = studio.request("/api/config", {"reference": "x" * 2_000_000})
    assert status == 400 and "1,000,000" in found["error"]
    status, found, _ = studio.request("/api/config", [1])
    assert status == 400 and "object" in found["error"]
