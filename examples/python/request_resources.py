"""Requests capacity of a RayCluster while a block of a Ray driver runs, and releases it when the driver ends or dies.

    with hold("train-7", [{"resources": {"CPU": 8, "GPU": 1}, "count": 4}]) as request:
        print(request["state"])  # Satisfied, or why not: request["reason"]["message"]
        ray.get([train.remote(part) for part in parts])

It runs in any pod of the Kubernetes cluster whose ServiceAccount may `request` on the RayCluster. HELIOSTAT_SERVER is the
address of Heliostat, HELIOSTAT_CA the authority of its certificate. KubeRay sets RAY_CLUSTER_NAME.
"""
import contextlib, json, os, pathlib, ssl, threading, time, urllib.error, urllib.request

ACCOUNT = pathlib.Path(os.environ.get("HELIOSTAT_ACCOUNT", "/var/run/secrets/kubernetes.io/serviceaccount"))
SERVER = os.environ.get("HELIOSTAT_SERVER", "https://heliostat.heliostat.svc:8090")


def call(method, path, body=None):
    cluster = f"/v1/namespaces/{(ACCOUNT / 'namespace').read_text()}/rayclusters/{os.environ['RAY_CLUSTER_NAME']}"
    request = urllib.request.Request(SERVER + cluster + path, json.dumps(body).encode() if body else None, method=method)
    request.add_header("Authorization", "Bearer " + (ACCOUNT / "token").read_text().strip())
    request.add_header("Content-Type", "application/json")
    tls = ssl.create_default_context(cafile=os.environ.get("HELIOSTAT_CA")) if SERVER.startswith("https:") else None
    try:
        with urllib.request.urlopen(request, timeout=90, context=tls) as answer:
            return json.loads(answer.read() or "null")
    except urllib.error.HTTPError as refused:  # its body is a problem document, which says why
        raise OSError(f"{method} {path}: {refused}: {refused.read().decode(errors='replace').strip()}") from None


@contextlib.contextmanager
def hold(name, bundles, lease=120, wait=60, **more):
    """Requests bundles in this ServiceAccount's name, waits up to wait seconds for them, and renews the lease until the block ends."""
    path, done = f"/request_resources/{name}", threading.Event()
    body, end = {"bundles": bundles, "leaseSeconds": lease, **more}, time.monotonic() + wait
    request = call("PUT", path, body)

    def renew():
        while not done.wait(lease / 3):
            with contextlib.suppress(OSError):  # the next try comes long before the lease is over
                call("PUT", path, body)

    heart = threading.Thread(target=renew, daemon=True)
    heart.start()
    try:
        while request["state"] == "Waiting" and time.monotonic() < end:
            time.sleep(1)
            with contextlib.suppress(OSError):  # Heliostat may restart
                request = call("GET", path)
        yield request
    finally:
        done.set()
        heart.join()
        with contextlib.suppress(OSError):  # its lease ends it
            call("DELETE", path)
