"""Packages that libraries import only to look whether a value is theirs are left out of commands, for those libraries alone."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from crowdveil.startup.unused_imports import _Refusal

UNUSED = (
    "pandas", "coverage", "jinja2", "scipy.spatial", "sqlite3", "crowdveil.ledger.audit", "crowdveil.manifest_schema",
    "crowdveil.guarantees.sectors", "crowdveil.guarantees.trajectories",
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "caller", "refused"),
    [
        ("pandas", "pyarrow.pandas_compat", True),
        ("pandas", "crowdveil.io.values", True),
        ("pandas", "pyspark.sql.pandas.types", False),
        ("pandas", "third_party_method", False),
        ("coverage", "numba.misc.coverage_support", True),
        ("coverage", "pytest_cov.plugin", False),
        ("scipy", "scipy_user", False),
        ("numpy", "pyarrow", False),
    ],
)
def test_only_some_callers_do_without(name: str, caller: str, refused: bool) -> None:
    names = {"__name__": caller, "finder": _Refusal(), "wanted": name}
    if refused:
        with pytest.raises(ModuleNotFoundError):
            exec("finder.find_spec(wanted)", names)
    else:
        exec("found = finder.find_spec(wanted)", names)
        assert names["found"] is None


@pytest.mark.parametrize("loaded", [False, True])
def test_numba_gets_scipy_only_for_kernels_that_use_it(loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """While numba's functions of arrays are imported it does without."""
    module = ModuleType("numba.np.arraymath")
    if loaded:
        vars(module)["_HAVE_BLAS"] = False
    monkeypatch.setitem(sys.modules, module.__name__, module)
    test_only_some_callers_do_without("scipy", "numba.np.linalg", not loaded)


def test_modules_that_no_command_calls_are_stand_ins() -> None:
    """Only when they are imported: a stand-in alone does not count as its package."""
    spec = _Refusal().find_spec("pyproj.sync")
    assert spec is not None
    with pytest.raises(OSError, match="download nothing"):
        _loaded(spec)._download_resource_file("grid.tif")


def _loaded(spec: ModuleSpec) -> Any:
    made = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(made)
    return made


def test_a_run_imports_nothing_that_it_does_not_use(tmp_path: Path) -> None:
    """Of a process of its own: what is imported cannot be taken back."""
    zones = (
        '{"type": "FeatureCollection", "features": ['
        + ",".join(
            f'{{"type": "Feature", "properties": {{"id": "z{i}"}}, '
            f'"geometry": {{"type": "Point", "coordinates": [{i / 100}, 0]}}}}'
            for i in range(4)
        )
        + "]}"
    )
    (tmp_path / "zones.geojson").write_text(zones)
    (tmp_path / "flows.csv").write_text("origin,destination,volume\nz0,z1,20\nz1,z2,3\nz2,z3,15\n")
    code = (
        "import sys\n"
        "sys.argv = ['crowdveil', 'anonymize', 'joint', 'flows.csv', '--zones', 'zones.geojson', '-o', 'out']\n"
        "from crowdveil.cli.main import main\n"
        "main()\n"
        f"print([name for name in {UNUSED} if name in sys.modules])\n"
        + (
            "import pandas, pyarrow\nprint(len(pyarrow.table({'a': [1, 2]}).to_pandas()))\n"
            if find_spec("pandas")
            else "print(2)\n"
        )
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-2:] == ["[]", "2"], done.stderr
