"""A Ray driver that does what it is told: one JSON command a line on stdin, one JSON event a line on stdout.

Commands   {"do": "task",    "id", "num_cpus", "num_gpus", "resources", "labels", "fallbacks", "seconds"}
           {"do": "actor",   "id", "num_cpus", "num_gpus", "resources", "labels", "fallbacks", "detached", "restarts"}   restarts also counts retries of a task
           {"do": "group",   "id", "bundles", "strategy" or "topology"}   a placement group
           {"do": "ask",     "id"}                                 calls the actor
           {"do": "finish",  "id"}                                 lets a task without "seconds" end by itself, where it runs
           {"do": "release", "id"}                                 ends the task, actor or placement group
           {"do": "request_resources", "id", "num_cpus", "bundles"}   Ray's own SDK call
           {"do": "data",    "id", "num_gpus", "batches", "seconds", "actors"}   a Ray Data pipeline; it needs pyarrow
           {"do": "fit",     "id", "workers", "resources", "seconds"}   a Ray Train job without an end, with steps of that many seconds and a checkpoint after each; it needs pyarrow
           {"do": "serve",   "id", "workers"}        a Ray Serve application with that many replicas of one CPU, and a steady stream of requests; it needs ray[serve]
Events     {"id", "event", "at", ...}: submitted, running (with pod), placed (with pods), answered (with pod),
           done, released, lost (with error), requested,
           step (with step and pod, of rank 0, when its checkpoint is reported), ready, bye

Times are seconds since the epoch, taken where the thing happens: "running" is stamped inside the worker process.
Nothing is retried by Ray, so work that a scale-down destroys is told as lost and not quietly done again.
"""

import json
import os
import socket
import sys
import threading
import time

import ray
from ray.exceptions import TaskCancelledError
from ray.experimental.internal_kv import _internal_kv_exists, _internal_kv_put
from ray.util import placement_group, remove_placement_group

out = threading.Lock()
held = {}  # id -> what release ends
released = set()


def tell(event, id="", at=None, **more):
    with out:
        print(json.dumps({"id": id, "event": event, "at": at or time.time(), **more}), flush=True)


def say(address, event, id, **more):
    """Tells the driver, from inside a worker process, that something happens there."""
    note = {"id": id, "event": event, "at": time.time(), "pod": os.environ.get("RAY_CLOUD_INSTANCE_ID", ""), **more}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.sendto(json.dumps(note).encode(), address)


@ray.remote(max_retries=0)
def work(address, id, seconds):
    say(address, "running", id)
    end = time.time() + seconds
    while time.time() < end if seconds > 0 else not _internal_kv_exists("finish " + id):
        time.sleep(0.05)  # short sleeps let a cancellation in
    return os.environ.get("RAY_CLOUD_INSTANCE_ID", "")


@ray.remote(max_restarts=0, max_task_retries=0)
class Actor:
    def __init__(self, address, id):
        say(address, "running", id)

    def ask(self):
        return os.environ.get("RAY_CLOUD_INSTANCE_ID", "")


def listen():
    """Opens the socket on which workers report; returns its address."""
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
    s.bind(("127.0.0.1", 0))

    def receive():
        while True:
            note = json.loads(s.recv(65536))
            tell(note.pop("event"), note.pop("id"), note.pop("at"), **note)

    threading.Thread(target=receive, daemon=True).start()
    return s.getsockname()


def options(command):
    """Turns a command into Ray's options. Ray gives tasks one CPU unless told otherwise; a command asks for what it names."""
    chosen = {"num_cpus": command.get("num_cpus", 0)}
    for key, name in (("num_gpus", "num_gpus"), ("resources", "resources"), ("labels", "label_selector")):
        if command.get(key):
            chosen[name] = command[key]
    if command.get("fallbacks"):
        chosen["fallback_strategy"] = [{"label_selector": labels} for labels in command["fallbacks"]]
    return chosen


def follow(id, ref, event):
    """Tells how the call behind ref ends."""

    def ended(future):
        error = future.exception()
        if error is None:
            tell(event, id, pod=future.result())
        elif isinstance(error, TaskCancelledError) and id in released:
            tell("released", id)
        else:
            tell("lost", id, error=f"{type(error).__name__}: {error}")

    ref.future().add_done_callback(ended)


def watch_group(id, group, moves):
    """Tells when all bundles of a placement group have their place, and on which nodes; with moves, each time anew."""
    told = None
    while id not in released:
        if group.wait(timeout_seconds=1):
            table = ray.util.placement_group_table(group)
            nodes = sorted(set(table["bundles_to_node_id"].values()))
            if nodes != told:
                tell("placed", id, nodes=nodes)
            if not moves:
                return
            told = nodes
            time.sleep(1)


def release(id):
    kind, thing = held.pop(id)
    released.add(id)
    if kind == "serve":
        return  # its stream tells its own end
    if kind == "task":
        ray.cancel(thing)
    elif kind == "actor":
        ray.kill(thing)
        tell("released", id)
    else:
        remove_placement_group(thing)
        tell("released", id)


def pipeline(command, address):
    """Runs a pipeline of batches through a pool of actors; each batch takes its seconds. Tells every actor that starts, and the end."""
    import ray.data

    id = command["id"]

    class Stage:
        def __init__(self):
            say(address, "running", id)

        def __call__(self, batch):
            time.sleep(command["seconds"])
            return batch

    least, most = command["actors"]
    batches = ray.data.range(command["batches"], override_num_blocks=command["batches"])
    stage = batches.map_batches(
        Stage,
        batch_size=1,
        num_cpus=0,
        num_gpus=command["num_gpus"],
        compute=ray.data.ActorPoolStrategy(min_size=least, max_size=most, max_tasks_in_flight_per_actor=2),
    )
    rows = stage.take_all()
    if len(rows) != command["batches"]:
        raise ValueError(f"{len(rows)} rows came of {command['batches']}")
    tell("done", id)


def fit(command, address):
    """Trains until the driver ends. Each attempt continues after the last checkpoint."""
    import tempfile

    from ray import train
    from ray.train import Checkpoint, FailureConfig, RunConfig, ScalingConfig
    from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer

    id = command["id"]

    def steps():
        last, first = train.get_checkpoint(), train.get_context().get_world_rank() == 0
        step = 0
        if last:
            with last.as_directory() as kept, open(os.path.join(kept, "step")) as f:
                step = int(f.read()) + 1
        while True:
            time.sleep(command["seconds"])
            with tempfile.TemporaryDirectory() as made:
                if first:
                    with open(os.path.join(made, "step"), "w") as f:
                        f.write(str(step))
                train.report({"step": step}, checkpoint=Checkpoint.from_directory(made) if first else None)
            if first:
                say(address, "step", id, step=step)
            step += 1

    DataParallelTrainer(
        steps,
        scaling_config=ScalingConfig(
            num_workers=command["workers"], use_gpu="GPU" in command["resources"], resources_per_worker=command["resources"]
        ),
        run_config=RunConfig(name=id, storage_path=os.environ["TMPDIR"], failure_config=FailureConfig(max_failures=-1)),
    ).fit()


def serve_app(command, address):
    """Runs a Serve application and calls it all the time until it is released. Tells every request that fails, and at the end how many there were."""
    from ray import serve

    id, threads = command["id"], 4

    @serve.deployment(num_replicas=command["workers"], ray_actor_options={"num_cpus": 1})
    class Echo:
        def __call__(self):
            time.sleep(0.02)
            return os.environ.get("RAY_CLOUD_INSTANCE_ID", "")

    serve.start(proxy_location="Disabled")
    handle = serve.run(Echo.bind(), name=id, route_prefix=None)
    tell("running", id)
    answered, slowest = [0] * threads, [0.0] * threads

    def stream(n):
        while id not in released:
            begin = time.monotonic()
            try:
                handle.remote().result(timeout_s=60)
                answered[n] += 1
                slowest[n] = max(slowest[n], time.monotonic() - begin)
            except Exception as error:
                tell("lost", id, error=f"{type(error).__name__}: {error}")
            time.sleep(0.05)

    streams = [threading.Thread(target=stream, args=(n,), daemon=True) for n in range(threads)]
    for each in streams:
        each.start()
    for each in streams:
        each.join()
    tell("done", id, pod=f"{sum(answered)} requests, the slowest {max(slowest):.2f} s")


def in_background(work, command, address):
    def run():
        try:
            work(command, address)
        except Exception as error:
            tell("lost", command["id"], error=f"{type(error).__name__}: {error}")

    threading.Thread(target=run, daemon=True).start()


def obey(command, address):
    do, id = command["do"], command.get("id", "")
    if do == "task":
        begin = time.time()
        ref = work.options(**options(command), max_retries=command.get("restarts", 0)).remote(address, id, command.get("seconds", 0))
        tell("submitted", id, begin)
        held[id] = ("task", ref)
        follow(id, ref, "done")
    elif do == "actor":
        begin = time.time()
        again = command.get("restarts", 0)
        life = {"max_restarts": again, "max_task_retries": again}
        if command.get("detached"):
            life |= {"lifetime": "detached", "name": id}
        held[id] = ("actor", Actor.options(**options(command), **life).remote(address, id))
        tell("submitted", id, begin)
    elif do == "group":
        begin = time.time()
        if command.get("topology"):
            group = placement_group(command["bundles"], topology_strategy={command["topology"]: "STRICT_PACK"})
        else:
            group = placement_group(command["bundles"], strategy=command.get("strategy", "PACK"))
        tell("submitted", id, begin)
        held[id] = ("group", group)
        threading.Thread(target=watch_group, args=(id, group, bool(command.get("topology"))), daemon=True).start()
    elif do == "ask":
        follow(id, held[id][1].ask.remote(), "answered")
    elif do == "finish":
        _internal_kv_put("finish " + id, b"")
    elif do == "release":
        release(id)
    elif do == "request_resources":
        from ray.autoscaler.sdk import request_resources

        request_resources(num_cpus=command.get("num_cpus"), bundles=command.get("bundles"))
        tell("requested", id)
    elif do == "data":
        begin = time.time()
        in_background(pipeline, command, address)
        tell("submitted", id, begin)
    elif do == "serve":
        held[id] = ("serve", None)
        in_background(serve_app, command, address)
    elif do == "fit":
        in_background(fit, command, address)
    else:
        raise ValueError(f"unknown command {do!r}")


def main():
    head = sys.argv[1]
    # The driver belongs to the head's node: otherwise it may attach to a worker and keep that one busy.
    ray.init(address=head, _node_ip_address=head.split(":")[0], log_to_driver=False, logging_level="ERROR")
    address = listen()
    tell("ready")
    for line in sys.stdin:
        command = json.loads(line)
        try:
            obey(command, address)
        except Exception as error:  # a driver that dies would take everybody's actors with it
            tell("lost", command.get("id", ""), error=f"{type(error).__name__}: {error}")
    ray.shutdown()
    tell("bye")


main()
