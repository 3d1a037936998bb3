#!/usr/bin/env python3
"""The tables of docs/models.md: roles and relations of a model's heads on disjoint samples of the built-in world.

  python3 bench/world_heads.py build/release/bin/qkv world [--samples 3] [--tokens 40000]

Each row is printed with all samples, so that what depends on the sample shows. A role is listed if it is found in any of them; a relation
if its head is right ten points oftener than the best guess without attention, where it is judged, in any of them.
"""
import argparse, json, subprocess, sys, tempfile

arguments = argparse.ArgumentParser()
arguments.add_argument("qkv")
arguments.add_argument("model")
arguments.add_argument("--samples", type=int, default=3)
arguments.add_argument("--stories", type=int, default=900, help="between the beginnings of two samples")
arguments.add_argument("--tokens", type=int, default=40000)
options = arguments.parse_args()


def measured(data, sample):
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        subprocess.run([options.qkv, "heads", options.model, "--data", data, "--labels", "world", "--tokens", str(options.tokens),
                        "--skip", str(sample * options.stories), "--dtype", "f32", "--json", "--out", out.name],
                       check=True, stdout=subprocess.DEVNULL, stderr=sys.stderr)
        report = json.load(open(out.name))
    first = min(report["texts"], options.stories)
    assert report["texts"] <= options.stories, f"{report['texts']} texts overlap with the next sample"
    print(f"{data}, sample {sample + 1}: {first} texts, {report['tokens']} tokens", file=sys.stderr)
    return report


def with_ends(e, digits=2, factor=1):
    shown = f"{e['mean'] * factor:.{digits}f}"
    if "interval95" in e:
        shown += f" [{e['interval95'][0] * factor:.{digits}f}, {e['interval95'][1] * factor:.{digits}f}]"
    return shown


def roles(reports):
    """The best head of the first sample that has the role, in all samples."""
    print("\n| role | head | score in each sample | explains | found |\n|---|---|---|---|---|")
    for rule in reports[0]["rules"]:
        found = [[h["name"] for h in r["heads"] if any(role["name"] == rule["role"] for role in h["roles"])] for r in reports]
        if not any(found):
            continue
        best = max((h for r, names in zip(reports, found) for h in r["heads"] if h["name"] in names),
                   key=lambda h: h["measures"][rule["measure"]]["mean"])["name"]
        heads = [next(h for h in r["heads"] if h["name"] == best)["measures"] for r in reports]
        everywhere = sorted(set.intersection(*map(set, found)) - {best})
        only_some = sorted(set.union(*map(set, found)) - set(everywhere) - {best})
        others = (f"; also {', '.join(everywhere)}" if everywhere else "") + (f"; in some {', '.join(only_some)}" if only_some else "")
        verdict = f"{sum(best in f for f in found)} of {len(reports)}"
        print(f"| {rule['role']} | {best} | {'; '.join(with_ends(m[rule['measure']]) for m in heads)} "
              f"| {', '.join(format(100 * m[rule['coverage']]['mean'], '.0f') for m in heads)} % | {verdict}{others} |")


def relations(reports):
    print("\n| relation | head | right | best guess | of the word's attention: there, on itself | explains | brought back; other heads | pairs | found |\n"
          "|---|---|---|---|---|---|---|---|---|")
    keys = []
    for r in reports:
        for s in r["labels"]["scores"]:
            key = (s["label"], s["direction"])
            if s["head"]["right"] and key not in keys:
                keys.append(key)
    for label, direction in keys:
        for number, r in enumerate(reports):
            s = next((s for s in r["labels"]["scores"] if (s["label"], s["direction"]) == (label, direction)), None)
            name = f"{label}, {direction}" if number == 0 else ""
            if s is None:
                print(f"| {name} | | too few cases | | | | | | no |")
                continue
            head, cause = s["head"], s["head"]["cause"]
            guess = max(b["mean"] for b in s["baselines"].values())
            back = f"{with_ends(cause['restored'])}; {cause['other_heads']['mean']:.2f}" if cause else ""
            if cause and cause["most"]["name"] != head["name"]:
                back += f"; most {cause['most']['name']} {cause['most']['restored']['mean']:.2f}"
            pairs = f"{cause['usable_pairs']}, {cause['pairs_differ_in']}" if cause else head["no_cause"]
            why = "yes" if head["found"] else "no: " + ("right" if not head["right"] else "attention" if not head["attends"] else "effect" if cause else "effect not known")
            if head["found"] and not cause:
                why = "attention alone"
            print(f"| {name} | {head['name']} | {with_ends(head['accuracy'], 1, 100)} % | {100 * guess:.1f} % | {with_ends(head['mass'])}, {head['on_itself']['mean']:.2f} "
                  f"| {100 * head['coverage']['mean']:.1f} % | {back} | {pairs} | {why} |")


for data in ("world", "world:zh"):
    reports = [measured(data, sample) for sample in range(options.samples)]
    print(f"\n{data}: {reports[0]['comparisons']} comparisons of roles, {reports[0]['labels']['comparisons']} of relations in each sample")
    roles(reports)
    relations(reports)
