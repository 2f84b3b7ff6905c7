"""Does on a real Ray what a conformance test asks for, one JSON object per line of standard input, each answered by
one line: "ok" or the error."""

import json
import sys
import time

import ray
from ray.util.placement_group import placement_group, remove_placement_group

VERSION = tuple(int(part) for part in ray.__version__.split(".")[:2])


def options(task):
    resources = dict(task["resources"])
    chosen = {"num_cpus": resources.pop("CPU", 0), "num_gpus": resources.pop("GPU", 0), "resources": resources}
    selectors = task.get("selectors") or []
    if selectors:
        chosen["label_selector"] = selectors[0]
    if len(selectors) > 1:
        chosen["fallback_strategy"] = [{"label_selector": selector} for selector in selectors[1:]]
    return chosen


@ray.remote
def work(seconds):
    end = time.time() + (seconds or 3600)
    while time.time() < end:
        time.sleep(0.05)


@ray.remote
class Actor:
    pass


def start(job):
    ends = []
    for task in job.get("tasks") or []:
        for _ in range(task["count"]):
            if task.get("actor"):
                actor = Actor.options(**options(task)).remote()
                ends.append(lambda actor=actor: ray.kill(actor))
            else:
                ref = work.options(**options(task)).remote(task.get("seconds", 0))
                ends.append(lambda ref=ref: ray.cancel(ref, force=True))
    for gang in job.get("gangs") or []:
        more = {}
        if gang.get("selectors"):
            more["bundle_label_selector"] = gang["selectors"]
        if gang.get("topology"):
            more["topology_strategy"] = {gang["topology"]: "STRICT_PACK"}
        else:
            more["strategy"] = gang["strategy"]
        group = placement_group(gang["bundles"], **more)
        ends.append(lambda group=group: remove_placement_group(group))
    return ends


def request(job):
    from ray.autoscaler.sdk import request_resources

    more = {}
    if job.get("selectors"):
        more["bundle_label_selectors"] = job["selectors"]
    request_resources(bundles=[{k: int(v) if v == int(v) else v for k, v in b.items()} for b in job["bundles"] or []], **more)


def main():
    address = sys.argv[1]
    ray.init(address=address, _node_ip_address=address.split(":")[0], log_to_driver=False, logging_level="ERROR")
    running = {}
    print("ok", flush=True)
    for line in sys.stdin:
        job = json.loads(line)
        try:
            if job["op"] == "do":
                running[job["id"]] = start(job["work"])
            elif job["op"] == "end":
                for end in running.pop(job["id"]):
                    end()
            else:
                request(job)
            print("ok", flush=True)
        except Exception as error:  # the test shows it
            print(" ".join(repr(error).split()), flush=True)


main()
