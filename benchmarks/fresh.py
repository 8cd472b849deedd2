"""Measurements that need a process which has done nothing else."""

import json
import subprocess
import sys
from typing import Any


def measured_alone(module: str, task: dict[str, Any]) -> dict[str, Any]:
    """What a module prints last, as JSON, when it is run as a program with the task as its argument."""
    done = subprocess.run([sys.executable, "-m", module, json.dumps(task)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"measuring {task} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])
