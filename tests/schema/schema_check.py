"""schema_check.py SAMPLER TOKENIZER SCHEMAS SAMPLES: many schemas, texts under each of them, judged by jsonschema.

The schemas are random but always the same ones. Exit codes: 0 all texts are valid, 1 some are not, 77 no jsonschema.
"""
import datetime
import json
import random
import re
import subprocess
import sys

try:
    import jsonschema
except ImportError:
    print("schema_check: left out, this Python has no jsonschema (Debian: python3-jsonschema)")
    sys.exit(77)

WORDS = ["name", "age", "Straße", "北京", "a", "ab", "a b", "x\"y", "back\\slash", "tab\there", "emoji 😀", "", "id", "kind",
         "null", "value/1", "~t", "long_property_name", "é", "Z"]
PATTERNS = ["^[a-z]+$", "^[A-Z][a-z]{1,8}( [A-Z][a-z]{1,8})?$", "ab", "^(yes|no|maybe)$", "^\\d{3}-\\d{4}$", "^[^\\s@]{1,20}@x$",
            "^\\w+(\\.\\w+)*$", "^.{3,5}$", "^[\\u4e00-\\u9fff]{1,4}$", "\\S", "^(?:a|b)*c?$", "^#[0-9a-fA-F]{6}$", "^[^\\W\\d]",
            "^a|b$", "x{2,}", "^\"quoted\"$", "^\\D+$", "^[\\w-]{1,20}$"]
FORMATS = ["date", "time", "date-time", "uuid", "ipv4", "email"]


class Maker:
    """Random schemas of what is supported."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def chance(self, p):
        return self.random.random() < p

    def string(self):
        schema = {"type": "string"}
        kind = self.random.randrange(5)
        if kind == 0:
            schema["minLength"] = self.random.randrange(6)
            schema["maxLength"] = schema["minLength"] + self.random.randrange(20)
        elif kind == 1:
            schema["pattern"] = self.random.choice(PATTERNS)
            if not schema["pattern"].startswith("^") or "|b" in schema["pattern"]:
                schema["maxLength"] = 30  # a text that knows nothing would look for it for long
        elif kind == 2:
            schema["format"] = self.random.choice(FORMATS)
        elif kind == 3:
            schema["maxLength"] = self.random.randrange(40)
        return schema

    def number(self):
        schema = {"type": self.random.choice(["integer", "number"])}
        digits = self.random.choice([0, 0, 1, 3]) if schema["type"] == "number" else 0
        low = round(self.random.uniform(-1000, 1000), digits)
        high = low + round(self.random.uniform(1, 5000), digits)
        low, high = (round(low, digits), round(high, digits)) if digits else (int(low), int(high))
        if self.chance(0.6):
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self.chance(0.6):
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = high + 1
        if self.chance(0.2) and high - low > 200:
            schema["multipleOf"] = self.random.choice([1, 2, 5, 7, 12, 100])
        return schema

    def values(self):
        pool = WORDS + [0, 1, -17, 2.5, 1e3, True, False, None, [1, "a"], {"k": [None]}]
        picked = self.random.sample(pool, self.random.randrange(1, 8))
        unique = []
        for value in picked:
            if not any(value == v and isinstance(value, bool) == isinstance(v, bool) for v in unique):
                unique.append(value)
        return {"const": unique[0]} if self.chance(0.3) else {"enum": unique}

    def array(self, depth):
        schema = {"type": "array"}
        if self.chance(0.15):
            return {"type": "array", "items": {"enum": self.random.sample(WORDS, 5)}, "uniqueItems": True,
                    "minItems": self.random.randrange(4)}
        if self.chance(0.3):
            schema["prefixItems"] = [self.schema(depth - 1) for _ in range(self.random.randrange(1, 4))]
        if self.chance(0.8):
            schema["items"] = self.schema(depth - 1)
        if self.chance(0.5):
            schema["minItems"] = self.random.randrange(3)
            if self.chance(0.7):
                schema["maxItems"] = schema["minItems"] + self.random.randrange(4)
        return schema

    def object(self, depth):
        names = self.random.sample(WORDS, self.random.randrange(0, 6))
        schema = {"type": "object", "properties": {name: self.schema(depth - 1) for name in names}}
        schema["required"] = [name for name in names if self.chance(0.5)]
        if self.chance(0.7):
            schema["additionalProperties"] = self.random.choice([False, False, True, None])
            if schema["additionalProperties"] is None:
                schema["additionalProperties"] = self.schema(depth - 1)
        if self.chance(0.15):
            schema["maxProperties"] = len(schema["required"]) + self.random.randrange(3)
        if self.chance(0.15) and schema.get("additionalProperties") is True:
            schema["minProperties"] = self.random.randrange(1, 4)
            schema.pop("maxProperties", None)
        return schema

    def choice(self, depth):
        if self.chance(0.4):
            kinds = self.random.sample(["string", "integer", "boolean", "null", "array", "object"], 3)
            return {"oneOf": [{"type": kind} for kind in kinds]}
        if self.chance(0.5):
            branches = []
            for i in range(self.random.randrange(1, 4)):
                branch = self.object(depth)
                branch.pop("maxProperties", None)
                branch["properties"] = {"kind": {"const": WORDS[i]}, **{k: v for k, v in branch["properties"].items() if k != "kind"}}
                branch["required"] = sorted(set(branch["required"]) | {"kind"})
                branches.append(branch)
            return {"oneOf": branches}
        return {"anyOf": [self.schema(depth - 1) for _ in range(self.random.randrange(1, 4))]}

    def together(self):
        return {"allOf": [{"type": "object", "properties": {"a": self.number(), "b": self.string()}, "required": ["a"]},
                          {"properties": {"b": {"type": ["string", "null"]}, "c": {"type": "boolean"}}, "required": ["c"]}],
                "title": "both"}

    def schema(self, depth):
        if depth <= 0:
            return self.random.choice([self.string, self.number, self.values, lambda: {"type": ["boolean", "null"]}])()
        kind = self.random.randrange(10)
        if kind < 4:
            return self.object(depth)
        if kind < 6:
            return self.array(depth)
        if kind == 6:
            return self.choice(depth)
        if kind == 7:
            return self.together()
        return self.schema(0)

    def top(self):
        kind = self.random.randrange(12)
        if kind == 0:
            return self.random.choice([{}, True, {"type": "object"}, {"type": ["array", "object"]}])
        if kind == 1:
            tree = {"type": "object", "properties": {"v": self.schema(0), "kids": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
                    "required": ["v"], "additionalProperties": False}
            return {"$defs": {"t": tree}, "$ref": "#/$defs/t"}
        if kind == 2:
            return {"type": "object", "properties": {"v": self.schema(1), "next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
                    "required": ["next"], "description": "a list"}
        return {"$schema": "https://json-schema.org/draft/2020-12/schema", **self.schema(self.random.randrange(1, 4))}


checker = jsonschema.FormatChecker(formats=("date", "uuid", "ipv4", "email"))


@checker.checks("date-time", ValueError)
def is_date_time(text):
    if not re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", text, re.ASCII):
        return False
    datetime.datetime.fromisoformat(re.sub(r"\.\d+", "", text).replace("Z", "+00:00"))
    return True


@checker.checks("time", ValueError)
def is_time(text):
    return is_date_time("2000-01-01T" + text)


def once(pairs):
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key appears twice")
    return result


def no_constant(name):
    raise ValueError(name + " is not a number")


def problem(schema, text):
    """Why the text does not satisfy the schema; empty if it does."""
    try:
        value = json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except ValueError as error:
        return "not JSON: " + str(error)
    errors = list(jsonschema.Draft202012Validator(schema, format_checker=checker).iter_errors(value))
    return errors[0].message if errors else ""


def main():
    sampler, tokenizer, schemas, samples = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    made = []
    for n in range(schemas):
        schema = Maker(n).top()
        jsonschema.Draft202012Validator.check_schema(schema)
        made.append(schema)
    # The check must be able to fail: a wrong text, a repeated key and a broken number are seen.
    assert problem({"type": "integer"}, '"a"') and problem({}, '{"a":1,"a":2}') and problem({}, "NaN")
    assert problem({"format": "date"}, '"2023-02-29"') and problem({"format": "time"}, '"25:00:00Z"')
    lines = "".join(json.dumps(schema, ensure_ascii=False) + "\n" for schema in made)
    run = subprocess.run([sampler, tokenizer, str(samples)], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in run.stdout.split("\n") if line]
    assert len(answers) == len(made), "the sampler answered %d of %d schemas" % (len(answers), len(made))
    bad = refused = cut = good = 0
    for schema, answer in zip(made, answers):
        if isinstance(answer, dict):
            refused += 1
            print("refused:", json.dumps(schema, ensure_ascii=False), "\n ", answer["error"])
            continue
        for text in answer:
            if text is None:
                cut += 1
                continue
            reason = problem(schema, text)
            good += not reason
            bad += bool(reason)
            if reason:
                print("invalid:", json.dumps(schema, ensure_ascii=False), "\n ", text, "\n ", reason)
    print("%d schemas: %d valid texts, %d invalid, %d not ended in time, %d schemas refused" % (len(made), good, bad, cut, refused))
    # A few texts may go on for long; most must end, and every schema here is one of those supported.
    return 1 if bad or refused or cut * 50 > len(made) * samples else 0


sys.exit(main())
