#!/usr/bin/env python3
"""Writes what python3-jinja2 renders for the templates in tests/text/chat, set up as transformers sets it up.

  scripts/make_chat_vectors.py              expected.json, from templates*.txt, expressions.txt and conversations.json
  scripts/make_chat_vectors.py REAL_FOLDER  real.json too: SHA-256 of what the templates of the models in it render

An output of null says that Python refuses.
"""
import datetime
import hashlib
import json
import pathlib
import sys

import jinja2
import jinja2.ext
import jinja2.nodes
import jinja2.sandbox

HERE = pathlib.Path(__file__).resolve().parent.parent / "tests/text/chat"


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class Generation(jinja2.ext.Extension):
    """{% generation %} of transformers: what the assistant writes. Here its body is rendered and no more."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_render"), [], [], body).set_lineno(line)

    def _render(self, caller):
        return caller()


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = datetime.datetime(2023, 11, 15, 12).strftime  # the same day in most of the world
    return env


def render(env, source, conversation, tokens):
    variables = {"tools": None, "documents": None, "add_generation_prompt": True, **tokens, **conversation}
    try:
        return env.from_string(source).render(**variables)
    except Exception:  # whatever Python thinks of it, it does not render
        return None


def sections(path):
    """"=== name" starts a template, which ends before the line end that precedes the next one."""
    out = {}
    for part in ("\n" + path.read_text(encoding="utf-8")).split("\n=== ")[1:]:
        name, _, source = part.partition("\n")
        out[name] = source
    return out


def main():
    env = environment()
    conversations = json.loads((HERE / "conversations.json").read_text(encoding="utf-8"))
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    templates = {**sections(HERE / "templates.txt"), **sections(HERE / "templates_wild.txt")}
    lines = (HERE / "expressions.txt").read_text(encoding="utf-8").split("\n")[:-1]
    expected = {
        "templates": {name: [render(env, source, c, tokens) for c in conversations.values()]
                      for name, source in templates.items()},
        "expressions": [render(env, line, conversations["values"], tokens) for line in lines],
    }
    with open(HERE / "expected.json", "w", encoding="utf-8") as file:
        json.dump(expected, file, ensure_ascii=False, indent=0)
        file.write("\n")
    if len(sys.argv) == 1:
        return
    real = {}
    for config in sorted(pathlib.Path(sys.argv[1]).glob("*/tokenizer_config.json")):
        settings = json.loads(config.read_text(encoding="utf-8"))
        if "chat_template" not in settings:
            continue
        named = {k: settings.get(k) for k in ("bos_token", "eos_token", "pad_token", "unk_token")}
        named = {k: v["content"] if isinstance(v, dict) else v for k, v in named.items() if v is not None}
        outputs = [render(env, settings["chat_template"], c, named) for c in conversations.values()]
        real[config.parent.name] = [o if o is None else hashlib.sha256(o.encode()).hexdigest() for o in outputs]
    with open(HERE / "real.json", "w", encoding="utf-8") as file:
        json.dump(real, file, indent=0)
        file.write("\n")


main()
