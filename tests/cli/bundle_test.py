#!/usr/bin/python3
"""What scripts/bundle.sh packs runs elsewhere: bundle_test.py BUILD

The bundle of the built programs with a model has at most 64 MiB. Unpacked in another folder, with nothing of this
machine in the environment, its programs load the bundle's libraries and those that each machine has, doctor tells of
the device, and the model's numbers are PyTorch's.
"""
import json
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 64 << 20
# glibc, its loader and g++'s libraries.
OF_THE_MACHINE = ("linux-vdso.", "ld-linux", "libc.", "libm.", "libdl.", "libpthread.", "librt.", "libresolv.",
                  "libstdc++.", "libgcc_s.")


def run(*command, code=0, **more):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, **more)
    assert done.returncode == code, (command, done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return done


def check_libraries(bundle, program):
    """Each is the bundle's own, or one that every machine has."""
    found = run("ldd", bundle / "bin" / program,
                env={"LD_LIBRARY_PATH": str(bundle / "lib"), "PATH": os.environ["PATH"]})
    rows = [line.split("=>") for line in found.stdout.splitlines() if "=>" in line]
    paths = {name.strip(): path.split(" (0x")[0].strip() for name, path in rows}
    own = [name for name, path in paths.items() if path.startswith(str(bundle / "lib"))]
    others = [name for name in paths if name not in own and not name.startswith(OF_THE_MACHINE)]
    assert own and not others, f"{program} loads from elsewhere: {others}"


def main():
    build = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        packed = folder / "trainscope.tar.gz"
        run("bash", ROOT / "scripts/bundle.sh", packed, ROOT / "tests/data/models/mlp",
            env={**os.environ, "BUILD": str(build)})
        assert packed.stat().st_size <= MOST_BYTES, f"{packed.stat().st_size} bytes"
        elsewhere = folder / "un packed"
        with tarfile.open(packed) as archive:
            archive.extractall(elsewhere)
        packed.unlink()
        bundle = elsewhere / "trainscope"
        bare = {"PATH": "/usr/bin:/bin", "HOME": str(folder)}
        for program in ("trainscope", "device_self_test", "device_kernels_bench"):
            check_libraries(bundle, program)
        doctor = json.loads(run(bundle / "trainscope", "doctor", "--json", cwd=folder, env=bare).stdout)
        cuda = doctor["cuda"]
        assert cuda["available"] or cuda["why"], cuda
        has_back_end = (bundle / "lib/libtrainscope_cuda.so").is_file()
        assert has_back_end == (build / "lib/libtrainscope_cuda.so").is_file()
        if not has_back_end:
            assert not cuda["available"], cuda
        run(bundle / "device_self_test", "--device", "cpu", "--op", "Gelu", cwd=folder, env=bare)
        verified = json.loads(run(bundle / "trainscope", "verify", bundle / "data/mlp", "--json", cwd=folder,
                                  env=bare).stdout)
        rows = [row for reference in verified["references"] for row in reference["rows"]]
        assert rows and all(row["ok"] for row in rows), rows
        built = (bundle / "BUILT").read_text(encoding="utf-8")
        assert built.startswith("commit "), built


if __name__ == "__main__":
    main()
