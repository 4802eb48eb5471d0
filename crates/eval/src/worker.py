"""Checks attempts for Bakeoff: one request per line on standard input, one verdict per line on standard output."""

import inspect
import json
import numbers
import os
import runpy
import sys
import traceback

# Output of checks goes to standard error; standard output carries verdicts only.
verdicts = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)

files = {}


def function(path, name):
    """Returns a function of a file, which is executed once."""
    if path not in files:
        folder = os.path.dirname(os.path.abspath(path))
        if folder not in sys.path:
            sys.path.insert(0, folder)
        files[path] = runpy.run_path(path)
    return files[path][name]


def call(found, values):
    """Calls a function with as many of the values as it has parameters."""
    parameters = inspect.signature(found).parameters.values()
    if any(one.kind == one.VAR_POSITIONAL for one in parameters):
        return found(*values)
    positional = [
        one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
    ]
    return found(*values[: len(positional)])


def verdict(request):
    attempt = request["attempt"]
    output, case = attempt["output"], attempt["case"]
    if "expression" in request:
        names = {"output": output, "case": case, "attempt": attempt}
        result = eval(request["expression"], names)
    else:
        found = function(request["file"], request["function"])
        result = call(found, [output, case, attempt])
    if isinstance(result, bool):
        return {"passed": result}
    if isinstance(result, numbers.Real):
        result = {"score": result}
    if not isinstance(result, dict) or not ("passed" in result or "score" in result):
        expected = "neither True, False, a score nor a dict with `passed` or `score`"
        return {"error": "the result is %.200r, %s" % (result, expected)}
    if isinstance(result.get("score"), numbers.Real):
        # Numbers of other libraries are no JSON, and neither is "not a number".
        score = float(result["score"])
        if not 0 <= score <= 1:
            return {"error": "the score %s is not from 0 to 1" % score}
        result = {**result, "score": score}
    return result


for line in sys.stdin:
    try:
        reply = json.dumps(verdict(json.loads(line)))
    except Exception:
        last = traceback.format_exc(limit=-1).strip()
        reply = json.dumps({"error": last.splitlines()[-1] if last else "failed"})
    verdicts.write(reply + "\n")
    verdicts.flush()
