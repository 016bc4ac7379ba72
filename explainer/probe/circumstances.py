"""What a run was made with: interpreter, packages, machine, git, the program's files, its configuration, its command line.

Read before or after the run, never in the user's process. Of files only digests are kept; values that may be secrets are
masked; of the environment only what steers torch and its launchers is looked at.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from explainer.digest import digest
from explainer.model.circumstances import Circumstances, Pairs
from explainer.probe.command import Ran, find_python, read_command, shorten
from explainer.probe.gpu import read_gpus
from explainer.probe.interpreter import Interpreter, find_interpreter
from explainer.probe.packages import read_packages, read_torch_build
from explainer.render.mask import mask_value
from explainer.source.text import Unreadable, read_bytes

VARIABLES = (
    "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER", "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUBLAS_WORKSPACE_CONFIG", "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF", "PYTORCH_ENABLE_MPS_FALLBACK",
    "TORCH_COMPILE_DISABLE", "TORCHDYNAMO_DISABLE", "TORCH_LOGS", "TORCH_DISTRIBUTED_DEBUG", "TORCH_NCCL_ASYNC_ERROR_HANDLING",
    "TORCH_NCCL_BLOCKING_WAIT", "TORCH_CUDNN_V8_API_DISABLED", "NVIDIA_TF32_OVERRIDE", "UNSLOTH_COMPILE_DISABLE",
    "ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED", "ACCELERATE_MIXED_PRECISION", "ACCELERATE_TORCH_DEVICE", "WORLD_SIZE",
    "LOCAL_WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES", "NCCL_DEBUG", "NCCL_P2P_DISABLE", "NCCL_IB_DISABLE",
    "NCCL_SOCKET_IFNAME", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "PYTHONOPTIMIZE", "TOKENIZERS_PARALLELISM",
    "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE",
)  # fmt: skip
_BY_HAND = (".py", ".ipynb", ".yaml", ".yml", ".toml", ".json", ".sh", ".cfg", ".ini")
_MAX_PACKAGES, _MAX_FILES, _MAX_SETTINGS, _MAX_VALUE = 1000, 300, 600, 80
_MAX_BYTES = 8 << 20
_GIT_SECONDS = 2.0
_GPU_SECONDS = 0.25


def read_circumstances(
    command: Sequence[str], root: str, variables: Mapping[str, str], *, is_probed: bool = True, also: Iterable[str] = ()
) -> Circumstances:
    """What a command runs with in the folder `root`, a real path.

    Args:
        command: its words.
        root: the project's folder.
        variables: the environment that it is given.
        is_probed: whether interpreter, packages and GPUs are looked at.
        also: files under `root` whose digests are wanted besides those of the program.
    """
    ran = read_command(command, root)
    files, settings = _program(ran, root)
    commit, dirty = _git(root)
    configured = {name.partition(": ")[0] for name, _ in settings}
    names = [one for one in (*dirty, *also) if one not in configured and one not in files]
    files.update({one: seen for one in names[:_MAX_FILES] if (seen := _digest_of(os.path.join(root, one)))})
    interpreter = find_interpreter(find_python(command)) if is_probed else None
    return Circumstances(
        python=interpreter.fact.value if interpreter and interpreter.fact else None,
        packages=_packages(interpreter) if interpreter else None,
        machine=_machine(interpreter) if interpreter else None,
        commit=commit,
        files=tuple(sorted(files.items())),
        settings=tuple(settings),
        arguments=ran.arguments,
        variables=tuple(
            (name, shorten(mask_value(name, variables[name]), root)[:_MAX_VALUE])
            for name in VARIABLES
            if name in variables
        ),
    )


def _packages(interpreter: Interpreter) -> Pairs | None:
    found = read_packages(interpreter.folders, None)[:_MAX_PACKAGES]
    return tuple((one.name, one.version) for one in found) if found else None


def _machine(interpreter: Interpreter) -> Pairs:
    """The GPUs, the driver, and what torch was built for."""
    gpus = read_gpus(_GPU_SECONDS)
    names = [one.name for one in gpus.gpus or ()]
    counted = ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "none"
    seen = (("GPUs", counted),) if gpus.gpus is not None else ()
    facts = (*gpus.facts, *read_torch_build(interpreter.folders))
    return (*seen, *((fact.name.replace("_", " "), fact.value) for fact in facts))


def _program(ran: Ran, root: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The digests of the program's own files under `root`, and the values of the configuration files that it reads."""
    from explainer.source.program import read_program
    from explainer.source.setting.file import find_read_texts

    program = read_program(root, [ran.file] if ran.file else [])
    files = {os.path.relpath(one.path, root): digest(one.data) for one in program.order}
    if ran.file and ran.file not in program.files and (seen := _digest_of(ran.file)):
        files[os.path.relpath(ran.file, root)] = seen
    settings: list[tuple[str, str]] = []
    for text in find_read_texts(root, program.order, (ran.program, *ran.arguments)):
        settings.extend(_settings(text, root)[: _MAX_SETTINGS - len(settings)])
    return {name: seen for name, seen in files.items() if not name.startswith("..")}, settings


def _settings(text: object, root: str) -> list[tuple[str, str]]:
    """The values of a configuration file by `file: key`; long ones as digests, secrets masked."""
    from explainer.source.setting.setting import COMMAND, leaves, read_document
    from explainer.source.text import TextFile

    assert isinstance(text, TextFile)
    document = read_document(text)
    name = os.path.relpath(text.path, root)
    pairs = (
        [(".".join(one.path), one.raw) for one in document.settings]
        if document.kind == COMMAND
        else [(".".join(path), _plain(value)) for tree in document.trees for path, value in leaves(tree)]
    )
    if not pairs:
        return [(f"{name}: content", digest(text.data))]
    return [(f"{name}: {key}", shorten(_short(mask_value(key, value)), root)) for key, value in pairs]


def _plain(value: object) -> str:
    """A leaf as `leaves` gives it: its type's name and its repr."""
    return str(value[1]) if isinstance(value, tuple) and len(value) == 2 else str(value)


def _short(value: str) -> str:
    return value if len(value) <= _MAX_VALUE else f"{len(value)} characters, {digest(value.encode('utf-8', 'replace'))}"


def _digest_of(path: str) -> str | None:
    try:
        return digest(read_bytes(path, _MAX_BYTES))
    except Unreadable:
        return None


def _git(root: str) -> tuple[str | None, list[str]]:
    """The commit that is checked out, and the files under `root` that people write and that differ from it."""
    head = _ask_git(root, "rev-parse", "--short=12", "HEAD")
    if head is None:
        return None, []
    prefix = (_ask_git(root, "rev-parse", "--show-prefix") or "").strip()
    told = _ask_git(root, "status", "--porcelain=v1", "-z", "--no-renames", "--", ".") or ""
    names = [line[3:] for line in told.split("\0") if len(line) > 3]
    inside = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    return head.strip(), [name for name in inside if name.endswith(_BY_HAND)][:_MAX_FILES]


def _ask_git(root: str, *words: str) -> str | None:
    quiet = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    try:
        run = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "-C", root, *words],
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
            env=quiet,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return run.stdout.decode("utf-8", "replace") if run.returncode == 0 else None
