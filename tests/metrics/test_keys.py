"""Keys on a real pseudo terminal: read at once, and the terminal is as before on every way out."""

from __future__ import annotations

import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

import pytest

from gymnast.metrics.keys import Keys

fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")
pty = pytest.importorskip("pty")

TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
IN_FOREGROUND = [sys.executable, "-c", TAKE_TERMINAL]
"""Python as the foreground job of the terminal it has as standard input."""

CHILD = """
import os, sys, time, signal
from gymnast.metrics.keys import Keys
{before}
with Keys() as keys:
    print("listening" if keys.listening else "deaf", flush=True)
    end = time.monotonic() + 20
    got = ""
    while time.monotonic() < end and "q" not in got:
        got += keys.pressed()
        time.sleep(0.01)
    print("got", got, flush=True)
    {inside}
print("over", flush=True)
"""


class Terminal:
    """A program on a terminal of its own, as its foreground job."""

    def __init__(self, before="", inside="pass"):
        self.master, slave = pty.openpty()
        self.slave = slave
        self.modes = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [*IN_FOREGROUND, "-c", CHILD.format(before=before, inside=inside)],
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def line(self):
        return self.process.stdout.readline().strip()

    def press(self, text):
        os.write(self.master, text.encode())

    def changed(self):
        return termios.tcgetattr(self.slave) != self.modes

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()
        os.close(self.master)
        os.close(self.slave)


def test_keys_come_at_once_and_unseen():
    with Terminal() as terminal:
        assert terminal.line() == "listening"
        assert terminal.changed()
        for key in "anq":
            terminal.press(key)
            time.sleep(0.05)
        assert terminal.line() == "got anq"  # without Enter
        assert terminal.line() == "over"
        assert terminal.process.wait(20) == 0
        assert not terminal.changed()
        os.set_blocking(terminal.master, False)
        with pytest.raises(BlockingIOError):
            os.read(terminal.master, 100)  # no key was echoed


@pytest.mark.parametrize(
    "inside", ["raise RuntimeError", "sys.exit(3)", "raise KeyboardInterrupt", "os.kill(os.getpid(), 2)"]
)
def test_the_terminal_is_restored_on_every_way_out(inside):
    with Terminal(inside=inside) as terminal:
        assert terminal.line() == "listening" and terminal.changed()
        terminal.press("q")
        assert terminal.process.wait(20) != 0
        assert not terminal.changed()


def test_ctrl_c_is_still_a_signal():
    with Terminal() as terminal:
        assert terminal.line() == "listening"
        terminal.press("\x03")
        assert terminal.process.wait(20) != 0
        assert "KeyboardInterrupt" in terminal.process.stderr.read()
        assert not terminal.changed()


def test_a_training_that_gets_sigterm_restores_the_terminal():
    """As StopRequest does: a handler that ends the loop."""
    handler = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))"
    with Terminal(before=handler) as terminal:
        assert terminal.line() == "listening" and terminal.changed()
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.process.wait(20) == 0
        assert not terminal.changed()


def test_a_background_job_is_deaf_and_not_stopped():
    """Setting the modes of a terminal from the background would stop the program."""
    leave_the_foreground = "if os.fork(): os.wait(); os._exit(0)\nos.setpgid(0, 0)"
    with Terminal(before=leave_the_foreground) as terminal:
        assert terminal.line() == "deaf"
        assert not terminal.changed()


def test_a_terminal_that_goes_away_is_no_error():
    with Terminal(before="signal.signal(signal.SIGHUP, signal.SIG_IGN)") as terminal:
        assert terminal.line() == "listening"
        os.close(terminal.master)
        terminal.master = os.dup(terminal.slave)
        os.close(terminal.slave)
        terminal.slave = os.dup(terminal.master)
        time.sleep(0.3)
        assert terminal.process.poll() is None


@pytest.mark.parametrize("stdin", ["file", "closed", "none"])
def test_without_a_terminal_nothing_happens(monkeypatch, tmp_path, stdin):
    (tmp_path / "keys").write_text("aaaa")
    stream = (tmp_path / "keys").open()
    if stdin == "closed":
        stream.close()
    monkeypatch.setattr(sys, "stdin", None if stdin == "none" else stream)
    with Keys() as keys:
        assert not keys.listening and keys.pressed() == ""
    if stdin == "file":
        assert stream.read() == "aaaa"  # nothing was taken
    stream.close()


def test_a_pipe_keeps_what_is_in_it(monkeypatch):
    read, write = os.pipe()
    os.write(write, b"aaaa")
    with os.fdopen(read) as stream:
        monkeypatch.setattr(sys, "stdin", stream)
        with Keys() as keys:
            assert not keys.listening and keys.pressed() == ""
        assert os.read(read, 9) == b"aaaa"
    os.close(write)


def test_in_another_thread_nothing_happens(monkeypatch):
    """A signal may end the process there without a word to the table."""
    master, slave = pty.openpty()
    stream = os.fdopen(slave)
    monkeypatch.setattr(sys, "stdin", stream)
    before, heard = termios.tcgetattr(slave), []

    def listen():
        with Keys() as keys:
            heard.append(keys.listening)

    thread = threading.Thread(target=listen)
    thread.start()
    thread.join()
    assert heard == [False] and termios.tcgetattr(slave) == before
    stream.close()
    os.close(master)


def test_the_keys_of_a_real_training(tmp_path):
    """`a` shows all metrics, `n` their names in SB3; Ctrl-C ends it, and the terminal is as before."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("4H", 40, 80, 0, 0))
    modes = termios.tcgetattr(slave)
    settings = ["train.env_steps=40000000", "train.stop_when_solved=false", "eval.every=40000000", "log.interval=0.1"]
    process = subprocess.Popen(
        [*IN_FOREGROUND, "-m", "gymnast", "train", "CartPole-v1:ppo", *settings, "--runs-dir", str(tmp_path)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**os.environ, "TERM": "xterm-256color"},
        start_new_session=True,
    )
    try:
        seen = _until(master, "a: all metrics")
        assert "starting: the first steps are being collected" in seen
        assert termios.tcgetattr(slave) != modes
        os.write(master, b"a")
        _until(master, "a: page 1 of")
        os.write(master, b"n")
        _until(master, "ep_rew_mean")
        os.write(master, b"\x03")
        last = _until(master, "gymnast resume ")
        assert "interrupted (SIGINT)" in last
        assert process.wait(60) == 130
        assert termios.tcgetattr(slave) == modes
    finally:
        process.kill()
        process.wait()
        os.close(master)
        os.close(slave)


def _until(master, text):
    """What the terminal got until this appeared."""
    seen, end = "", time.monotonic() + 90
    while text not in seen:
        assert time.monotonic() < end, f"'{text}' did not appear: {seen[-2000:]}"
        if select.select([master], [], [], 0.2)[0]:
            seen += os.read(master, 65536).decode("utf-8", "replace")
    return seen
