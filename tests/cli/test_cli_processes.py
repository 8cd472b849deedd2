"""`fit` in several processes, as torchrun starts them."""

import os
import subprocess
import sys

import pandas as pd
from cli_tables import waves


def test_two_processes_fit_what_one_does(tmp_path):
    waves().drop(columns="dose").to_csv(tmp_path / "t.csv", index=False)
    fit = ["-m", "smoothcde", "fit", "t.csv", "--target", "outcome", "--model", "gru", "--hidden", "4", "--epochs", "3"]
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for folder, launcher in (("one", []), ("two", torchrun)):
        result = subprocess.run(
            [sys.executable, *launcher, *fit, "--out", folder],
            cwd=tmp_path,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert result.returncode == 0, result.stderr
        assert result.stdout.count("Best of 3 epochs") == 1
    one, two = (pd.read_csv(tmp_path / f"{folder}.metrics.csv").drop(columns="seconds") for folder in ("one", "two"))
    pd.testing.assert_frame_equal(one, two, rtol=0, atol=1e-4)
