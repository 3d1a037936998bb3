"""What the library says of its program, said of the module: hints name options of commands, and Python has arguments."""

from __future__ import annotations

import re

# Calls of the module that do what a command does.
_CALLS = {
    "run": "model.generate()",
    "chat": "model.generate()",
    "translate": "model.translate()",
    "score": "model.score()",
    "look": "model.look()",
    "heads": "model.roles()",
    "lens": "model.lens()",
    "cut": "model.cut()",
    "patch": "model.patch()",
    "attribute": "model.attribute()",
    "taps": "model.taps()",
    "tokenize": "model.tokenizer.encode()",
    "models": "qkv.builtin_models()",
    "new": "qkv.new_model()",
}
# Arguments whose names are not those of the options.
_ARGUMENTS = {"dtype": "precision", "from": "start", "for": "target", "html": "html()", "json": "json()"}

_PHRASES = [
    (r"qkv tokenize MODEL --ids TEXT prints those of a text", "model.tokenizer.encode(text) gives those of a text"),
    (r"qkv tokenize shows (them|where a text is split)", r"model.tokenizer.pieces(ids) shows \1"),
    (r"qkv taps MODEL lists", "model.taps() lists"),
    (r"token ids are taken instead of text \(--ids [^)]*\)", "a list of token ids is taken instead of a text"),
    (r"use --(context|max-new) (\S+) or less", r"use --\1 \2 or less"),
    (r"compute in f32,\s+--dtype f32", 'compute in f32, precision="f32"'),
    (r"--set ([\w.]+)=(\S+)", r'set={"\1": \2}'),
    (r"(?:continue|go on with) it with --resume", "continue it with resume=True"),
    (r"without --resume", "without resume"),
    (r"name the field with --field", 'name the field with set={"data.field": name}'),
    (r"See --document in\s+qkv data pack --help", 'See "data.document" of a recipe'),
    (r"pack with a larger --split-validation", 'set a larger "data.validation"'),
    (r"all fall to validation: --split-validation 0", 'all fall to validation: set={"data.validation": 0}'),
    (r"; choose a smaller --group", ""),
    (r"resume with --from-scratch", "resume with qkv train --resume --from-scratch"),
    (r"--from-scratch begins", "qkv train --resume --from-scratch begins"),
    (r"train again with --watch", "train again with qkv train --watch"),
    (r"leave --seeds out", "leave the number of seeds out"),
    (r"study the heads without removing them: leave --out away", "study the heads without removing them: model.cut() measures"),
    (r"leave --layer out", "leave the layer out"),
    (r"\(or --data\)", "(or data=)"),
]
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'")  # names and texts of the user
# A whole line for a shell: commands the module has no call for, with what follows them.
_SHELL = re.compile(
    r"\bcmake --preset \S+ -D[\w=]+|\bqkv (?:version|train|quantize|convert|verify|info|movie|world|lab|serve|data|tokenizer|eval|align|route|twins|demo|help)\b"
    r"(?: (?:--?[\w-]+(?:=\S+)?|[A-Z][A-Z.]*|pack|train|translate|world|demo|\.\.\.|&&|qkv|models|\S*/\S+|[\w-]+-run))*"
)
_CALL = re.compile(r"\bqkv (" + "|".join(_CALLS) + r")\b(?: MODEL\b)?(?: (?:TEXT|\"text\"|\.\.\.))?")
_OPTION = re.compile(r"--([a-z][a-z-]*)(?:[ =](cuda|cpu|f32|bf16|N(?![\w])|-?\d+(?:\.\d+)?))?")


def in_python(text: str) -> str:
    """A message or a hint of the library with the names that Python has for them. What it quotes stays as it is.

    >>> in_python("use a shorter context, or --device cpu")
    'use a shorter context, or device="cpu"'
    >>> in_python("qkv taps MODEL lists them all")
    'model.taps() lists them all'
    >>> in_python("make the folder again with  qkv quantize")
    'make the folder again with  qkv quantize (in a shell)'
    """
    if "--" not in text and "qkv " not in text:
        return text
    kept: list[str] = []

    def keep(said: str) -> str:
        kept.append(said)
        return f"\0{len(kept) - 1}\0"

    text = _QUOTED.sub(lambda m: keep(m.group()), text)
    for phrase, said in _PHRASES:
        text = re.sub(phrase, said, text)
    text = _SHELL.sub(lambda m: keep(m.group() + " (in a shell)"), text)
    text = _CALL.sub(lambda m: _CALLS[m.group(1)], text)
    text = _OPTION.sub(_argument, text)
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda m: kept[int(m.group(1))], text)
    return text


def _argument(option: "re.Match[str]") -> str:
    name, value = option.group(1), option.group(2)
    name = _ARGUMENTS.get(name, name.replace("-", "_"))
    if value is None:
        return name
    return f"{name}={value}" if re.match(r"-?\d|N$", value) else f'{name}="{value}"'
