"""A real PostgreSQL for the tests: binaries of the machine, or those the package `pgserver` ships."""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

USER, PASSWORD = "privloss", "s3cret"


def binaries() -> Path:
    """A directory with initdb and postgres."""
    places = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    places += [Path(p) for p in sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True)]
    for place in places:
        if (place / "initdb").exists() and (place / "postgres").exists():
            return place
    import pgserver

    return Path(pgserver.__file__).parent / "pginstall" / "bin"


class Server:
    """One cluster in a temporary directory, run by a user that is not root (PostgreSQL refuses root). Commits are
    written before they are answered, and outlive a server that is killed; only a durable one waits until they are on
    the disk, which matters when the machine itself goes down: to no test, but to who measures."""

    def __init__(self, *, durable: bool = False) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="privloss-pg-"))
        self.user = pwd.getpwnam("nobody").pw_name if os.getuid() == 0 else None
        self.home.chmod(0o755)
        data, secret = self.home / "data", self.home / "secret"
        secret.write_text(PASSWORD)
        data.mkdir(mode=0o700)
        if self.user:
            for path in (self.home, data, secret):
                shutil.chown(path, self.user)
        place = binaries()
        make = [
            str(place / "initdb"),
            "-D",
            str(data),
            "-U",
            USER,
            "-A",
            "scram-sha-256",
            f"--pwfile={secret}",
            "-E",
            "UTF8",
        ]
        subprocess.run([*make, "--no-instructions"], check=True, capture_output=True, user=self.user, cwd=self.home)
        for _ in range(5):  # another program may take the free port first
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
            self._run = [str(place / "postgres"), "-D", str(data), "-p", str(self.port)]
            self._run += ["-k", str(self.home), "-h", "127.0.0.1", *([] if durable else ["-c", "fsync=off"])]
            if self._start():
                return
        raise RuntimeError("PostgreSQL did not start")

    def _start(self) -> bool:
        self.process = subprocess.Popen(
            self._run, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, user=self.user, cwd=self.home
        )
        return self._answers()

    def restart(self, how: signal.Signals) -> None:
        """End the server (SIGINT: in order; SIGQUIT: at once, as in a crash) and start it on the same port."""
        self.process.send_signal(how)
        self.process.wait()
        if not self._start():
            raise RuntimeError("PostgreSQL did not start again")

    def url(self, database: str = "postgres", password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{password}@127.0.0.1:{self.port}/{database}"

    def _answers(self) -> bool:
        """Wait until it answers, or has ended."""
        import psycopg

        while self.process.poll() is None:
            try:
                psycopg.connect(self.url()).close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.05)
        return False

    def await_recovery(self) -> None:
        """After a backend was killed the server ends the others, and is away until it has read its log."""
        if not self._answers():
            raise RuntimeError("PostgreSQL did not recover")

    def fresh(self, name: str) -> str:
        """A new, empty database."""
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGQUIT)  # at once: nothing in it is needed any more
        self.process.wait()
        shutil.rmtree(self.home, ignore_errors=True)
