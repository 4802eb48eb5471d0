#!/usr/bin/env python3
"""Runs the same cases through Bakeoff, promptfoo and Inspect AI against one simulated provider.

Prints wall time, CPU time and requests of each tool: the figures of the comparison in the README.

    python3 -m venv venv && venv/bin/pip install inspect-ai openai
    npm install --prefix tools promptfoo
    cargo build --release
    python3 scripts/compare-tools.py --bakeoff target/release/bakeoff \\
        --promptfoo tools/node_modules/.bin/promptfoo --inspect venv/bin/inspect

A tool whose option is absent is left out. Each tool runs with its default concurrency and, where it has such
an option, with one that suits the provider. Everything runs on loopback; no key is needed.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

PROFILES = {
    "fast": {
        "about": "no limits, 200 ms per response",
        "toml": "latency = { kind = \"fixed\", ms = 200 }",
        "tuned": 100,
        "ideal": lambda cases: 0.2,
    },
    "rate": {
        "about": "20 requests/s, burst 20, 200 ms per response, 429 without headers",
        "toml": "latency = { kind = \"fixed\", ms = 200 }\nrequests = { rate_per_s = 20, burst = 20 }",
        "tuned": 4,
        "ideal": lambda cases: max(cases - 20, 0) / 20 + 0.2,
    },
    "cap": {
        "about": "30 requests at a time, 500 ms per response, 429 without headers",
        "toml": "latency = { kind = \"fixed\", ms = 500 }\nconcurrency = 30",
        "tuned": 30,
        "ideal": lambda cases: -(-cases // 30) * 0.5,
    },
}


class Provider:
    """`bakeoff sim` with a profile, as its own process."""

    def __init__(self, bakeoff, folder, profile):
        path = os.path.join(folder, "profile.toml")
        with open(path, "w") as file:
            file.write(f"[[profile]]\nname = \"p\"\n{profile}\n")
        self.process = subprocess.Popen(
            [bakeoff, "sim", "--port", "0", "--profile", path],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )
        self.base_url = self.process.stdout.readline().strip()

    def stats(self):
        with urllib.request.urlopen(self.base_url.removesuffix("/v1") + "/stats") as reply:
            return json.load(reply)

    def stop(self):
        self.process.kill()
        self.process.wait()


def bakeoff_command(options, folder, base_url, cases, connections):
    limits = f"limits = {{ connections = {connections}, strategy = \"fixed\" }}" if connections else ""
    with open(os.path.join(folder, "bakeoff.toml"), "w") as file:
        file.write(f"""
[suite]
artifacts = "none"
[models.m]
provider = "openai"
model = "sim/echo"
base_url = "{base_url}"
{limits}
[[target]]
name = "echo"
model = "m"
prompt = "Say {{{{ word }}}}."
[cases]
file = "cases.jsonl"
[[check]]
kind = "contains"
value = "{{{{ word }}}}"
""")
    with open(os.path.join(folder, "cases.jsonl"), "w") as file:
        file.writelines(json.dumps({"id": f"c{n}", "word": f"w{n}"}) + "\n" for n in range(cases))
    return [options.bakeoff, "run", folder, "--out", os.path.join(folder, "runs"),
            "--no-cache", "--no-memory", "--no-fail", "--quiet"]


def promptfoo_command(options, folder, base_url, cases, connections):
    config = {
        "prompts": ["Say {{word}}."],
        "providers": [{"id": "openai:chat:sim/echo", "config": {"apiBaseUrl": base_url, "apiKey": "none"}}],
        "tests": [{"vars": {"word": f"w{n}"}, "assert": [{"type": "contains", "value": f"w{n}"}]}
                  for n in range(cases)],
    }
    path = os.path.join(folder, "promptfooconfig.json")
    with open(path, "w") as file:
        json.dump(config, file)
    command = [options.promptfoo, "eval", "-c", path, "--no-cache", "--no-progress-bar", "--no-table", "--no-write"]
    return command + (["-j", str(connections)] if connections else [])


def inspect_command(options, folder, base_url, cases, connections):
    with open(os.path.join(folder, "task.py"), "w") as file:
        file.write(f"""
from inspect_ai import Task, task
from inspect_ai.dataset import Sample
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def words():
    samples = [Sample(input=f"Say w{{n}}.", target=f"w{{n}}") for n in range({cases})]
    return Task(dataset=samples, solver=generate(), scorer=includes())
""")
    # It accepts only a relative path of the task.
    command = [options.inspect, "eval", "task.py", "--model", "openai/sim/echo", "--model-base-url", base_url,
               "-M", "responses_api=false", "--display", "none", "--log-dir", os.path.join(folder, "logs")]
    return command + (["--max-connections", str(connections)] if connections else [])


TOOLS = {"bakeoff": bakeoff_command, "promptfoo": promptfoo_command, "inspect": inspect_command}


def measure(options, tool, profile, connections):
    """Runs one tool on a fresh provider; returns wall seconds, CPU seconds and the provider's counts."""
    with tempfile.TemporaryDirectory() as folder:
        provider = Provider(options.bakeoff, folder, PROFILES[profile]["toml"])
        try:
            command = TOOLS[tool](options, folder, provider.base_url, options.cases, connections)
            environment = dict(
                os.environ, OPENAI_API_KEY="none", HOME=folder, BAKEOFF_CACHE_DIR=os.path.join(folder, "cache"),
                PROMPTFOO_DISABLE_TELEMETRY="1", PROMPTFOO_DISABLE_UPDATE="1", PROMPTFOO_CONFIG_DIR=folder,
            )
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            start = time.monotonic()
            try:
                subprocess.run(command, cwd=folder, env=environment, timeout=options.timeout,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                wall = time.monotonic() - start
            except subprocess.TimeoutExpired:
                wall = float("inf")
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
            return wall, cpu, provider.stats()
        finally:
            provider.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bakeoff", required=True, help="path of bakeoff")
    parser.add_argument("--promptfoo", help="path of promptfoo")
    parser.add_argument("--inspect", help="path of inspect")
    parser.add_argument("--cases", type=int, default=600)
    parser.add_argument("--profile", choices=PROFILES, action="append", help="only this profile; repeatable")
    parser.add_argument("--timeout", type=float, default=600, help="seconds after which a tool is stopped")
    options = parser.parse_args()
    for name in TOOLS:
        path = getattr(options, name)
        if path:
            setattr(options, name, os.path.abspath(path))
    for profile in options.profile or PROFILES:
        described = PROFILES[profile]
        ideal = described["ideal"](options.cases)
        print(f"\n{profile}: {described['about']}; {options.cases} cases, ideal {ideal:.1f} s")
        print(f"{'tool':<12}{'concurrency':<14}{'seconds':>9}{'CPU s':>8}{'answered':>10}{'rejected':>10}")
        for tool in TOOLS:
            if not getattr(options, tool):
                continue
            for connections in (None, described["tuned"]):
                wall, cpu, stats = measure(options, tool, profile, connections)
                rejected = stats.get("refused", {}).get("429", 0)
                print(f"{tool:<12}{connections or 'default':<14}{wall:>9.1f}{cpu:>8.1f}"
                      f"{stats['answered']:>10}{rejected:>10}", flush=True)
                if wall < float("inf") and stats["answered"] < options.cases:
                    sys.exit(f"{tool} ended with {stats['answered']} of {options.cases} cases answered")
    return 0


if __name__ == "__main__":
    sys.exit(main())
