"""Plans snapshots with the planner of Ray's own autoscaler.

Reads one JSON object a line, {"snapshot": {...}, "limit": CPU seconds}, and answers each with one line: what Ray's
planner would do, and the CPU seconds of its schedule() alone. A decision that takes longer than the limit is answered
as "unfinished", and what makes Ray's planner raise as "raised".
"""

import gc
import json
import logging
import signal
import sys
import time
import traceback

from ray.autoscaler.v2.instance_manager.config import NodeTypeConfig
from ray.autoscaler.v2.scheduler import ResourceDemandScheduler, SchedulingRequest
from ray.autoscaler.v2.schema import AutoscalerInstance
from ray.autoscaler.v2.utils import ResourceRequestUtil
from ray.core.generated.autoscaler_pb2 import (
    ClusterResourceConstraint,
    GangResourceRequest,
    NodeState,
    NodeStatus,
    ResourceRequestByCount,
)
from ray.core.generated.common_pb2 import LabelSelectorOperator
from ray.core.generated.instance_manager_pb2 import Instance, NodeKind, TerminationRequest

HEAD_GROUP = "headgroup"

# What a snapshot's state is to Ray's instance manager, unless the node says it itself in imState.
INSTANCE_STATUS = {
    "RUNNING": Instance.RAY_RUNNING,
    "IDLE": Instance.RAY_RUNNING,
    "PENDING": Instance.ALLOCATED,
    "LEAVING": Instance.RAY_STOPPING,
    "ALLOCATION_TIMEOUT": Instance.ALLOCATION_TIMEOUT,
}

CAUSE = {
    TerminationRequest.Cause.IDLE: "idle",
    TerminationRequest.Cause.OUTDATED: "outdated",
    TerminationRequest.Cause.MAX_NUM_NODES: "max_workers",
    TerminationRequest.Cause.MAX_NUM_NODE_PER_TYPE: "max_group",
}

Affinity = ResourceRequestUtil.PlacementConstraintType


def label_constraint(key, expression):
    """Reads a label expression: v, !v, in(a,b) or !in(a,b)."""
    operator = LabelSelectorOperator.LABEL_OPERATOR_IN
    if expression.startswith("!"):
        operator, expression = LabelSelectorOperator.LABEL_OPERATOR_NOT_IN, expression[1:]
    if expression.startswith("in(") and expression.endswith(")"):
        return key, operator, expression[3:-1].split(",")
    return key, operator, [expression]


def resource_request(resources, selectors=(), placement=None):
    return ResourceRequestUtil.make(
        resources,
        constraints=[placement] if placement else [],
        label_selectors=[[label_constraint(k, v) for k, v in s.items()] for s in selectors or ()],
    )


def requests_by_count(requests):
    return [
        ResourceRequestByCount(request=resource_request(r["resources"], r.get("labelSelectors")), count=r["count"])
        for r in requests or ()
    ]


def gang_request(gang, index):
    """Makes a placement group as the GCS reports it: the strict strategies are (anti-)affinity to the group's own label."""
    label = "_PG_" + (gang.get("id") or f"{index:036x}")
    placement = {
        "STRICT_PACK": (Affinity.AFFINITY, label, ""),
        "STRICT_SPREAD": (Affinity.ANTI_AFFINITY, label, ""),
    }.get(gang["strategy"])
    selectors = gang.get("bundleLabelSelectors") or [None] * len(gang["bundles"])
    reported = GangResourceRequest()
    options = [(gang["bundles"], selectors)]
    options += [(bundles, [None] * len(bundles)) for bundles in gang.get("fallbackBundles") or ()]
    for bundles, selectors in options:
        requests = [resource_request(b, [s] if s else (), placement) for b, s in zip(bundles, selectors)]
        reported.bundle_selectors.add().resource_requests.extend(requests)
    reported.requests.extend(reported.bundle_selectors[0].resource_requests)
    return reported


def node_type_configs(snapshot):
    configs = {}
    for group in snapshot["groups"] or ():
        hosts = group.get("numOfHosts") or 1
        configs[group["name"]] = NodeTypeConfig(
            name=group["name"],
            min_worker_nodes=group.get("minReplicas", 0) * hosts,
            max_worker_nodes=group.get("maxReplicas", 2**31 - 1) * hosts,
            idle_timeout_s=group.get("idleTimeoutSeconds"),
            priority=group.get("priority", 0),
            resources={k: float(v) for k, v in group["resources"].items()},
            labels=group.get("labels") or {},
            launch_config_hash=group.get("launchConfigHash", ""),
        )
    head = snapshot.get("head")
    if head:
        configs[HEAD_GROUP] = NodeTypeConfig(
            name=HEAD_GROUP, min_worker_nodes=0, max_worker_nodes=1, resources=head.get("total") or head.get("resources") or {}
        )
    return configs


def instance(node, index, kind):
    """Makes what the instance manager and the GCS know of one pod."""
    status = INSTANCE_STATUS[node.get("state") or "RUNNING"]
    if node.get("imState"):
        status = Instance.InstanceStatus.Value(node["imState"])
    group = HEAD_GROUP if kind == NodeKind.HEAD else node["group"]
    known = Instance(
        instance_id=node.get("pod") or HEAD_GROUP,
        instance_type=group,
        status=status,
        node_kind=kind,
        launch_config_hash=node.get("launchConfigHash", ""),
    )
    if status != Instance.RAY_RUNNING:
        return AutoscalerInstance(im_instance=known)
    known.node_id = f"{index:056x}"
    total = node.get("total") or node.get("resources") or {}
    idle_ms = int(1000 * (node.get("idleSeconds") or 0))
    reported = NodeState(
        node_id=bytes.fromhex(known.node_id),
        ray_node_type_name=group,
        total_resources=total,
        available_resources=node.get("available") if node.get("available") is not None else total,
        labels=node.get("labels") or {},
        dynamic_labels=node.get("placedLabels") or {},
        status=NodeStatus.IDLE if idle_ms else NodeStatus.RUNNING,
        idle_duration_ms=idle_ms,
    )
    return AutoscalerInstance(cloud_instance_id=known.instance_id, ray_node=reported, im_instance=known)


def scheduling_request(snapshot):
    head = snapshot.get("head")
    instances = [instance(head, 0, NodeKind.HEAD)] if head else []
    instances += [instance(n, i, NodeKind.WORKER) for i, n in enumerate(snapshot.get("nodes") or (), 1)]
    most = snapshot.get("maxWorkers")
    constraint = requests_by_count(snapshot.get("requestResources"))
    return SchedulingRequest(
        disable_launch_config_check=bool(snapshot.get("launchConfigCheckDisabled")),
        node_type_configs=node_type_configs(snapshot),
        max_num_nodes=most + (1 if head else 0) if most is not None else None,
        idle_timeout_s=snapshot.get("idleTimeoutSeconds"),
        resource_requests=requests_by_count(snapshot.get("pendingRequests")),
        gang_resource_requests=[gang_request(g, i) for i, g in enumerate(snapshot.get("pendingGangRequests") or ())],
        cluster_resource_constraints=[ClusterResourceConstraint(resource_requests=constraint)] if constraint else [],
        current_instances=instances,
        cloud_resource_availabilities=scores(snapshot, "cloudAvailability"),
        recoverable_resource_availabilities=scores(snapshot, "recoverableScore"),
    )


def scores(snapshot, key):
    return {g["name"]: g[key] for g in snapshot["groups"] or () if g.get(key) is not None}


def left_over(asked, infeasible):
    """Counts, for each entry of what was asked, how much of it is not served."""
    left = {}
    for request in infeasible:
        key = request.SerializeToString(deterministic=True)
        left[key] = left.get(key, 0) + 1
    counts = []
    for entry in asked:
        key = entry.request.SerializeToString(deterministic=True)
        count = min(entry.count, left.get(key, 0))
        left[key] = left.get(key, 0) - count
        counts.append(count)
    return counts


class Unfinished(BaseException):
    """A decision reached its limit. No exception of Ray's, so nothing in Ray's planner catches it."""


def stop_planning(_signal, _frame):
    raise Unfinished


def plan(snapshot, limit=0):
    request = scheduling_request(snapshot)
    gc.collect()
    scheduler = ResourceDemandScheduler()
    signal.setitimer(signal.ITIMER_PROF, limit)
    began = time.process_time()
    try:
        reply = scheduler.schedule(request)
    finally:
        seconds = time.process_time() - began
        signal.setitimer(signal.ITIMER_PROF, 0)
    unserved = [id(g) for g in reply.infeasible_gang_resource_requests]
    return {
        "seconds": seconds,
        "launch": {r.instance_type: r.count for r in reply.to_launch},
        "terminate": [{"pod": r.instance_id, "reason": CAUSE[r.cause]} for r in reply.to_terminate],
        "unservedRequests": left_over(request.resource_requests, reply.infeasible_resource_requests),
        "unservedGangs": [i for i, g in enumerate(request.gang_resource_requests) if id(g) in unserved],
        "unservedConstraint": bool(reply.infeasible_cluster_resource_constraints),
    }


def main():
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGPROF, stop_planning)
    gc.freeze()  # what the imports made stays; looking through it took longer than a small plan
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            answer = plan(asked["snapshot"], asked.get("limit", 0))
        except Unfinished:
            answer = {"unfinished": True}
        except (AssertionError, KeyError) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            answer = {"raised": f"{type(error).__name__} in {where.name}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
