"""Generate the Python code of the contracts into gen/.

Run it as `make proto`. The result is committed; `make check` runs it again and fails on a difference.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GEN = HERE / "gen"
PACKAGE = GEN / "affidavit"
HAND_WRITTEN = {"verify"}


def generate(target: Path) -> None:
    """Write the generated packages of every .proto file below `target`.

    Args:
        target: Folder that becomes the import root.

    Raises:
        subprocess.CalledProcessError: When protoc refuses a file.
    """
    sources = sorted(str(path.relative_to(HERE)) for path in HERE.glob("affidavit/**/*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{HERE}"]
    command += [f"--{out}={target}" for out in ("python_out", "grpc_python_out", "mypy_out", "mypy_grpc_out")]
    subprocess.run([*command, *sources], check=True, cwd=HERE)
    for package in {target / "affidavit", *(target / Path(source).parent for source in sources)}:
        for folder in (package, package.parent):
            if folder != target:
                (folder / "__init__.py").touch()
    (target / "affidavit" / "py.typed").touch()


def main() -> None:
    """Replace the committed generated code."""
    for folder in PACKAGE.iterdir():
        if folder.is_dir() and folder.name not in HAND_WRITTEN:
            shutil.rmtree(folder)
    generate(GEN)


if __name__ == "__main__":
    main()
