"""A wheel of the module (PEP 517) from CMake's build, with nothing but the standard library.

QKV_BUILD names a build folder whose module is there already, as build/release of ./qkv python: it is taken as it is and
nothing is built in it, since others may be using it. Without it build/wheel is made, with kernels for every instruction
set, so that the wheel runs on other machines too: about 4 minutes on two cores, and pip -v shows how far it is. Kernels
for NVIDIA GPUs are built where a GPU is, as ./qkv does, or with QKV_CUDA=ON.
"""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def _project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def _metadata(project: dict) -> str:
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Requires-Python: {project['requires-python']}",
    ]
    lines += [f"Requires-Dist: {needed}" for needed in project["dependencies"]]
    return "\n".join(lines) + "\n"


def _tag() -> str:
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return f"{python}-{python}-{platform}"


def _built() -> pathlib.Path:
    """The folder build/PRESET with the module in it."""
    if said := os.environ.get("QKV_BUILD"):
        build = pathlib.Path(said)
        if not list((build / "python" / "qkv").glob("_core.*.so")):
            raise SystemExit(f"QKV_BUILD is {said}, which has no module in python/qkv\n  hint: ./qkv python builds one in build/release")
        return build
    build = ROOT / "build" / "wheel"
    build.mkdir(parents=True, exist_ok=True)
    options = ["-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_CXX_FLAGS_RELEASE=-O2 -DNDEBUG", "-DQKV_ISAS=all", "-DQKV_PYTHON=ON"]
    options.append(f"-DQKV_CUDA={os.environ.get('QKV_CUDA') or ('AUTO' if os.path.exists('/dev/nvidiactl') else 'OFF')}")
    configure = ["cmake", "-S", str(ROOT), "-B", str(build), "-G", "Ninja", f"-DPython_EXECUTABLE={_python()}"]
    subprocess.run(configure + options, check=True)
    subprocess.run(["cmake", "--build", str(build), "--target", "qkv_python"], check=True)
    return build


def _python() -> str:
    """The interpreter pip runs in, not the one of its short-lived environment."""
    return getattr(sys, "_base_executable", sys.executable)


def _files(build: pathlib.Path) -> dict[str, pathlib.Path]:
    package = build / "python" / "qkv"
    files = {}
    for file in sorted(package.iterdir()):
        if file.suffix in (".py", ".pyi", ".so") or file.name == "py.typed":
            files[f"qkv/{file.name}"] = file
    for file in sorted((package / "lib").iterdir()):
        files[f"qkv/lib/{file.name}"] = file.resolve()
    for file in sorted((ROOT / "models").rglob("*")):  # where src/open/builtin_models.cpp looks for them
        if file.is_file() and file.parent != ROOT / "models":
            files[f"qkv/share/qkv/models/{file.relative_to(ROOT / 'models').as_posix()}"] = file
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    project = _project()
    name = f"{project['name']}-{project['version']}"
    wheel = f"{name}-{_tag()}.whl"
    info = f"{name}.dist-info"
    record = []
    with tempfile.NamedTemporaryFile(dir=wheel_directory, delete=False) as made:
        with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as out:

            def add(path: str, data: bytes) -> None:
                entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = (0o755 if ".so" in path else 0o644) << 16
                out.writestr(entry, data)
                sum = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
                record.append(f"{path},sha256={sum},{len(data)}")

            for path, file in _files(_built()).items():
                add(path, file.read_bytes())
            add(f"{info}/METADATA", _metadata(project).encode())
            head = f"Wheel-Version: 1.0\nGenerator: qkv\nRoot-Is-Purelib: false\nTag: {_tag()}\n"
            add(f"{info}/WHEEL", head.encode())
            record.append(f"{info}/RECORD,,")
            out.writestr(f"{info}/RECORD", "\n".join(record) + "\n")
    os.chmod(made.name, 0o644)
    os.replace(made.name, os.path.join(wheel_directory, wheel))
    return wheel


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    project = _project()
    info = f"{project['name']}-{project['version']}.dist-info"
    folder = pathlib.Path(metadata_directory) / info
    folder.mkdir()
    (folder / "METADATA").write_text(_metadata(project))
    (folder / "WHEEL").write_text(f"Wheel-Version: 1.0\nGenerator: qkv\nRoot-Is-Purelib: false\nTag: {_tag()}\n")
    return info
