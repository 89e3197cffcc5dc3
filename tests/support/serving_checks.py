"""Long checks of a service, of any size: a few seconds in tests, the whole of it in benchmarks/service.py."""

from __future__ import annotations

import io
import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import httpx
from serving import BARE, ERROR_KEYS, Running, cabs, ended, put, until
from serving_fuzz import Fuzz

from crowdveil.errors import CrowdveilError
from crowdveil.server.workers.job import work

GENERALIZE = "/methods/simple-generalization/jobs"


def memory_mib(process: int) -> float:
    """Memory that a process holds."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def fuzz(service: Running, count: int, seed: int) -> dict[str, int]:
    """Send mutated files; how often each answer came.

    Raises if any answer is no 2xx or 4xx, if a job ends in a fault of ours, or if anything stays on the disk.
    """
    made_up, answers = Fuzz(seed), Counter[str]()
    jobs: list[str] = []
    with service.client() as client:
        for _ in range(count):
            answer = made_up.send(client)
            assert answer.status_code < 500, (answer.status_code, answer.text)
            assert answer.status_code < 300 or set(answer.json()["error"]) == ERROR_KEYS, answer.text
            answers[str(answer.status_code)] += 1
            if answer.status_code == 202:
                jobs.append(answer.json()["id"])
        for job in jobs:
            found = ended(client, job, 600)
            assert found["state"] in ("done", "failed"), found
            answers[found["state"] if found["error"] is None else found["error"]["code"]] += 1
            assert found["error"] is None or found["error"]["code"] not in ("fault", "crashed"), found
            answer = client.get(f"/jobs/{job}/result")
            assert answer.status_code in (200, 422), answer.text
            assert client.delete(f"/jobs/{job}").status_code == 200
        assert client.get("/jobs").status_code == 200
    until(lambda: not [*(service.folder / "incoming").iterdir(), *(service.folder / "jobs").iterdir()])
    return dict(answers)


def performed(count: int, seed: int) -> dict[str, int]:
    """Run jobs with mutated files in this process, as a worker would; how often each end came. A fault of ours comes out."""
    made_up, ends = Fuzz(seed), Counter[str]()
    before = Path.cwd()
    for _ in range(count):
        asked = made_up.job()
        kind, name, _ = asked.path.strip("/").split("/")
        with tempfile.TemporaryDirectory() as made:
            inputs, run = Path(made, "inputs"), Path(made, "run")
            inputs.mkdir()
            run.mkdir()
            files = {field: field + Path(sent).suffix for field, (sent, _) in asked.files.items()}
            if not all(Path(file).suffix in (".csv", ".parquet", ".geojson", ".zip") for file in files.values()):
                continue  # refused when the file is received
            for field, (_, content) in asked.files.items():
                (inputs / files[field]).write_bytes(content)
            kinds = {"methods": "anonymize", "measures": "measure", "analyses": "analyze", "attacks": "attack"}
            job = {"kind": kinds.get(kind, kind), "name": name, "parameters": asked.parameters, "files": files, "limits": {},
                   "inputs": str(inputs), "run": str(run), "ledger": None}  # fmt: skip
            try:
                work(job)
                ends["done"] += 1
            except (CrowdveilError, RecursionError) as error:
                ends[type(error).__name__] += 1
            finally:
                os.chdir(before)
    return dict(ends)


# Many at once


def verified(client: httpx.Client, job: str) -> None:
    """Raise unless a job is done and its result is whole."""
    found = ended(client, job, 600)
    assert found["state"] == "done", found
    for _ in range(600):  # a busy machine takes a while to start it again
        try:
            result = client.get(f"/jobs/{job}/result")
            break
        except httpx.TransportError:  # it is being started again
            time.sleep(0.2)
    else:
        raise AssertionError("the result cannot be had")
    import hashlib

    assert hashlib.sha256(result.content).hexdigest() == found["result"]["sha256"]
    with zipfile.ZipFile(io.BytesIO(result.content)) as archive:
        assert archive.testzip() is None
        manifest = json.loads(archive.read("manifest.json"))
        for entry in manifest["files"].values():
            assert hashlib.sha256(archive.read(entry["name"])).hexdigest() == entry["sha256"]


def load(service: Running, jobs: int, clients: int) -> dict[str, float]:
    """Small jobs from several clients at once: each is done, each result whole, each begun once; seconds, and memory."""
    assert service.process is not None
    process = service.process.pid
    before, begun = memory_mib(process), time.monotonic()

    def one(number: int) -> list[str]:
        with service.client() as client:
            mine = [
                put(client, GENERALIZE, {"data": ("a.csv", cabs(shift=number * 100 + i))}, BARE)
                for i in range(jobs // clients)
            ]
            for job in mine:
                verified(client, job)
            return mine

    with ThreadPoolExecutor(clients) as pool:
        made = [job for mine in pool.map(one, range(clients)) for job in mine]
    seconds = time.monotonic() - begun
    with service.client() as client:
        assert len(set(made)) == jobs // clients * clients
        assert all(client.get(f"/jobs/{job}").json()["runs"] == 1 for job in made)
        assert all(client.delete(f"/jobs/{job}").json()["state"] == "expired" for job in made)
    return {
        "jobs": len(made),
        "seconds": round(seconds, 1),
        "MiB before": round(before),
        "MiB after": round(memory_mib(process)),
    }


def fair(service: Running, queued: int) -> dict[str, float]:
    """One token fills the queue, and another sends one job: how many of the others start before it, and how long it waits.

    Raises where it waits for more than two jobs of each worker.
    """
    service.make_token("bert")
    with service.client("anna") as anna, service.client("bert") as bert:
        made = [put(anna, GENERALIZE, {"data": ("a.csv", cabs(shift=i))}, BARE) for i in range(queued)]
        until(lambda: anna.get(f"/jobs/{made[0]}").json()["state"] != "queued")
        mine = put(bert, GENERALIZE, {"data": ("a.csv", cabs())}, BARE)
        found = ended(bert, mine)
        assert found["state"] == "done", found
        seen = [ended(anna, job, 600) for job in made]
        for client, jobs in ((anna, made), (bert, [mine])):
            assert all(client.delete(f"/jobs/{job}").status_code == 200 for job in jobs)
    before = [job for job in seen if found["created_at"] <= job["started_at"] < found["started_at"]]
    assert len(before) <= 2 * service.workers, (len(before), service.workers)
    waited = datetime.fromisoformat(found["started_at"]) - datetime.fromisoformat(found["created_at"])
    length = statistics.median(job["seconds"] for job in seen)
    return {"jobs before it": len(before), "waited": waited.total_seconds(), "a job takes": length}


def killing(service: Running, jobs: int, every_s: float, seed: int) -> dict[str, int]:
    """`kill -9` of the server or a second worker every few seconds until all jobs are done; how often, and how many runs it took.

    Between two kills a job ends: where a machine is so busy that workers take longer to start than they live, nothing ever would.
    """
    chance, stop, kills, ended_jobs = random.Random(seed), threading.Event(), Counter[str](), list[str]()

    def start_worker() -> subprocess.Popen[bytes]:
        code = "from crowdveil.cli.main import main; main()"
        return subprocess.Popen([sys.executable, "-c", code, "server", "worker", *service.arguments])

    def kill() -> None:
        seen, worker = -1, start_worker()
        while not stop.wait(every_s * chance.uniform(0.5, 1.5)):
            if len(ended_jobs) <= seen:
                continue
            seen = len(ended_jobs)
            if chance.random() < 0.5:
                service.kill()
                kills["server"] += 1
                time.sleep(chance.uniform(0, 0.5))
                service.start()
            else:
                worker.kill()
                worker.wait()
                kills["worker"] += 1
                worker = start_worker()
        worker.kill()
        worker.wait()

    killer = threading.Thread(target=kill)
    with service.client() as client:
        made = [put(client, GENERALIZE, {"data": ("a.csv", cabs(shift=i))}, BARE) for i in range(jobs)]
        killer.start()
        try:
            for job in made:
                verified(client, job)
                ended_jobs.append(job)
        finally:
            stop.set()
            killer.join()
        runs = sum(client.get(f"/jobs/{job}").json()["runs"] for job in made)
        for job in made:
            client.delete(f"/jobs/{job}")
    until(lambda: not list((service.folder / "jobs").iterdir()))
    return {"jobs": jobs, "runs": runs, **{f"kills of a {who}": n for who, n in kills.items()}}


def rate(service: Running, seconds: float) -> dict[str, float]:
    """Ask for the state of one job again and again on one connection: requests a second, and the slowest in milliseconds."""
    with service.client() as client:
        job = put(client, GENERALIZE, {"data": ("a.csv", cabs())}, BARE)
        ended(client, job)
        times, begun = list[float](), time.perf_counter()
        while time.perf_counter() - begun < seconds:
            asked = time.perf_counter()
            assert client.get(f"/jobs/{job}").status_code == 200
            times.append(time.perf_counter() - asked)
        took = time.perf_counter() - begun
        client.delete(f"/jobs/{job}")
    return {"requests a second": round(len(times) / took, 1), "slowest ms": round(max(times) * 1000, 1)}


def upload(service: Running, file: Path) -> dict[str, float]:
    """One large upload: by how much the server's memory grew, and at its height."""
    from crowdveil.server.client import Remote

    assert service.process is not None
    process, stop, seen = service.process.pid, threading.Event(), [0.0]
    before = memory_mib(process)

    def watch() -> None:
        while not stop.wait(0.02):
            seen[0] = max(seen[0], memory_mib(process))

    watcher = threading.Thread(target=watch)
    watcher.start()
    begun = time.monotonic()
    server = Remote(service.url, service.tokens.get("anna", ""))
    job = server.start("filter", "trajectories", {"filters": [{"min_locations": 2}]}, {"data": file})
    seconds = time.monotonic() - begun
    stop.set()
    watcher.join()
    server.cancel(job["id"])
    return {
        "MiB sent": round(file.stat().st_size / 2**20),
        "MiB grown": round(seen[0] - before, 1),
        "seconds": round(seconds, 1),
    }


def described(service: Running, examples: int, seed: int, phases: str = "examples,coverage,fuzzing") -> Counter[str]:
    """schemathesis over the description of the API: how many requests it made up, and how the jobs among them ended.

    Raises if any answer is a 5xx, or if a job ends in a fault of ours. Other checks of schemathesis are left out: it holds what
    a description says of one field for all that the API knows, and so takes a name of one method with the parameters of
    another for a request that must succeed.
    """
    token = service.tokens["anna"]
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "schemathesis"), "run", f"{service.url}/openapi.json", "--header",
         f"Authorization: Bearer {token}", "--checks", "not_a_server_error", "--max-examples", str(examples),
         "--seed", str(seed), "--phases", phases, "--suppress-health-check", "all", "--no-color"],
        capture_output=True, text=True, cwd=service.folder, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-6000:] + ran.stderr[-2000:]
    count = re.search(r"(\d+) generated", ran.stdout)
    assert count is not None, ran.stdout[-2000:]
    with service.client() as client:
        until(lambda: not _outcomes(client).keys() & {"queued", "running"}, 600)
        seen = _outcomes(client)
    assert not seen.keys() & {"fault", "crashed"}, seen
    return Counter({"requests": int(count[1])}) + seen


def _outcomes(client: httpx.Client) -> Counter[str]:
    """How jobs ended, or what they still are."""
    seen, before = Counter[str](), dict[str, str]()
    while page := client.get("/jobs", params={"limit": "1000", **before}).json()["jobs"]:
        seen.update(job["state"] if job["error"] is None else job["error"]["code"] for job in page)
        before = {"before": page[-1]["id"]}
    return seen
