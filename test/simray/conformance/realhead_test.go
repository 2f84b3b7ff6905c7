package conformance

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/simray"
)

//go:embed driver.py
var driverPy string

// realHead is a Ray head, its workers and a driver. They are local processes with their own loopback addresses.
type realHead struct {
	version simray.Version
	venv    string
	dir     string // short, because the paths of Ray's sockets in it are at most 107 bytes
	network string // the first three numbers of the IP addresses
	port    int
	env     []string
	hosts   int
	head    *process
	workers []*process
	driver  *process
	stdin   io.WriteCloser
	answers *bufio.Scanner
	jobs    int
}

func newReal(t *testing.T, version simray.Version) *realHead {
	t.Helper()
	variable := "HELIOSTAT_RAY_VENV_" + strings.ReplaceAll(string(version), ".", "_")
	venv := os.Getenv(variable)
	if venv == "" {
		t.Skipf("%s is not set: it names a virtual environment with ray[default]==%s; make test-all sets it", variable, version)
	}
	dir, err := os.MkdirTemp("/tmp", "rc")
	if err != nil {
		t.Fatal(err)
	}
	h := &realHead{version: version, venv: venv, dir: dir, network: fmt.Sprintf("127.%d.%d", 128+os.Getpid()>>8&0x7f, os.Getpid()&0xff), hosts: 1}
	h.port = freePort(t)
	// The home directory is empty: if ~/.ray has a token, a head requires it. RAY_enable_autoscaler_v2 is set because
	// the default of 2.40 is v1.
	h.env = append(withoutRay(os.Environ()), "HOME="+dir, "RAY_USAGE_STATS_KUBERAY_IN_USE=1", "RAY_USAGE_STATS_ENABLED=0", "RAY_enable_autoscaler_v2=1")
	t.Cleanup(func() {
		h.end()
		if t.Failed() {
			t.Logf("logs are kept in %s", dir)
			return
		}
		_ = os.RemoveAll(dir) // an agent can still write a file here; it is left in the temporary directory
	})
	return h
}

// withoutRay removes the variables of a Ray that this test may run under.
func withoutRay(environ []string) []string {
	var kept []string
	for _, e := range environ {
		if !strings.HasPrefix(e, "RAY_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// freePort returns a port that no program uses, also not at all addresses. It is below the ephemeral ports, from which
// another program may get any port before the head listens.
func freePort(t *testing.T) int {
	t.Helper()
	const lowest, ephemeral = 20000, 32768
	for range 200 {
		port := lowest + rand.IntN(ephemeral-lowest)
		listener, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			_ = listener.Close()
			return port
		}
	}
	t.Fatalf("200 random ports between %d and %d are in use", lowest, ephemeral)
	return 0
}

func startReal(t *testing.T, version simray.Version) *realHead {
	t.Helper()
	h := newReal(t, version)
	h.startHead(t)
	h.waitForRaylet(t)
	h.startDriver(t)
	return h
}

// waitForRaylet waits for the head's own raylet. Without it, a driver attaches to the next raylet that joins.
func (h *realHead) waitForRaylet(t *testing.T) {
	t.Helper()
	h.waitForNode(t, gcs.Config{Address: h.Addr()})
}

func (h *realHead) waitForNode(t *testing.T, config gcs.Config) {
	t.Helper()
	client, err := gcs.Dial(config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	deadline := time.Now().Add(h.Patience())
	for {
		state, err := client.State(t.Context())
		if err == nil && len(state.Nodes) > 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("Ray head has no node: %v\n%s", err, h.head.log(t))
		}
		pause(t.Context(), 50*time.Millisecond)
	}
}

func (h *realHead) Addr() string            { return fmt.Sprintf("%s.1:%d", h.network, h.port) }
func (h *realHead) Version() simray.Version { return h.version }
func (h *realHead) Notice() time.Duration   { return time.Second }

// Patience is long: a head starts in 3 s on an idle machine, but much slower on a machine that runs many tests.
func (h *realHead) Patience() time.Duration { return 3 * time.Minute }

func (h *realHead) startHead(t *testing.T) {
	t.Helper()
	ip := h.network + ".1"
	args := []string{
		"start", "--head", "--block", "--node-ip-address=" + ip, fmt.Sprintf("--port=%d", h.port), "--temp-dir=" + h.dir + "/h",
		"--num-cpus=0", "--num-gpus=0", "--memory=2147483648", "--object-store-memory=80000000", "--include-dashboard=false",
		fmt.Sprintf("--dashboard-port=%d", freePort(t)), fmt.Sprintf("--ray-client-server-port=%d", freePort(t)),
		"--disable-usage-stats", "--no-monitor",
	}
	h.head = h.ray(t, "head", "headgroup", args)
	h.waitForPort(t)
}

func (h *realHead) waitForPort(t *testing.T) {
	t.Helper()
	deadline := time.Now().Add(h.Patience())
	for {
		conn, err := net.DialTimeout("tcp", h.Addr(), time.Second)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(deadline) || h.head.ended() {
			t.Fatalf("Ray head does not listen: %v\n%s", err, h.head.log(t))
		}
		pause(t.Context(), 100*time.Millisecond)
	}
}

func (h *realHead) Start(t *testing.T, worker simray.Node) {
	t.Helper()
	h.hosts++
	args := []string{
		"start", "--block", "--address=" + h.Addr(), fmt.Sprintf("--node-ip-address=%s.%d", h.network, h.hosts),
		fmt.Sprintf("--temp-dir=%s/%d", h.dir, h.hosts), "--object-store-memory=80000000", "--memory=1073741824",
		"--disable-usage-stats",
	}
	custom := map[string]float64{}
	for name, amount := range worker.Resources {
		switch name {
		case "CPU":
			args = append(args, "--num-cpus="+amount.String())
		case "GPU":
			args = append(args, "--num-gpus="+amount.String())
		default:
			custom[name] = amount.Float()
		}
	}
	if worker.Resources["GPU"] == 0 {
		args = append(args, "--num-gpus=0")
	}
	args = append(args, "--resources="+asJSON(t, custom), "--labels="+h.labels(t, worker.Labels))
	for try := 1; ; try++ {
		started := h.ray(t, worker.Instance, worker.Group, args)
		h.workers = append(h.workers, started)
		if h.runs(t, started) {
			return
		}
		if try == 3 {
			t.Fatalf("Ray worker does not start\n%s", started.log(t))
		}
	}
}

// runs waits until one worker has started. Workers start one at a time: before 2.60 they ignore --temp-dir and share
// the head's directory, so all but one of several fail. On a busy machine, any worker can fail 30 s after its raylet
// starts.
func (h *realHead) runs(t *testing.T, worker *process) bool {
	t.Helper()
	deadline := time.Now().Add(h.Patience())
	for !strings.Contains(worker.log(t), "Ray runtime started.") {
		if worker.ended() {
			return false
		}
		if time.Now().After(deadline) {
			t.Fatalf("Ray worker does not start\n%s", worker.log(t))
		}
		pause(t.Context(), 100*time.Millisecond)
	}
	return true
}

// labels formats labels as JSON up to 2.40, and as key=value pairs in later versions.
func (h *realHead) labels(t *testing.T, labels map[string]string) string {
	t.Helper()
	if h.version == simray.Ray240 {
		return asJSON(t, labels)
	}
	var pairs []string
	for key, value := range labels {
		pairs = append(pairs, key+"="+value)
	}
	return strings.Join(pairs, ",")
}

func (h *realHead) startDriver(t *testing.T) {
	t.Helper()
	script := h.write(t, "driver.py", []byte(driverPy))
	cmd := exec.Command(filepath.Join(h.venv, "bin", "python"), script, h.Addr())
	cmd.Env = h.env
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	h.stdin, h.answers = stdin, bufio.NewScanner(stdout)
	h.driver = startProcess(t, cmd, filepath.Join(h.dir, "driver.log"))
	h.answer(t, "connecting")
}

func (h *realHead) write(t *testing.T, name string, content []byte) (path string) {
	t.Helper()
	path = filepath.Join(h.dir, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// answer reads until the driver's next "ok". It ignores other output of libraries.
func (h *realHead) answer(t *testing.T, doing string) {
	t.Helper()
	late := time.AfterFunc(h.Patience(), h.driver.stop) // stops Scan
	defer late.Stop()
	var said []string
	for h.answers.Scan() {
		if h.answers.Text() == "ok" {
			return
		}
		said = append(said, h.answers.Text())
		if strings.HasSuffix(h.answers.Text(), ")") {
			break
		}
	}
	t.Fatalf("driver %s: %s\n%s", doing, strings.Join(said, "\n"), h.driver.log(t))
}

func (h *realHead) tell(t *testing.T, job map[string]any) {
	t.Helper()
	if _, err := fmt.Fprintln(h.stdin, asJSON(t, job)); err != nil {
		t.Fatalf("telling the driver: %v\n%s", err, h.driver.log(t))
	}
	h.answer(t, fmt.Sprint(job["op"]))
}

func (h *realHead) Do(t *testing.T, work Work) (stop func()) {
	t.Helper()
	h.jobs++
	id := h.jobs
	h.tell(t, map[string]any{"op": "do", "id": id, "work": work})
	return func() { h.tell(t, map[string]any{"op": "end", "id": id}) }
}

func (h *realHead) RequestResources(t *testing.T, bundles []map[string]float64, selectors []map[string]string) {
	t.Helper()
	h.tell(t, map[string]any{"op": "request", "bundles": bundles, "selectors": selectors})
}

func (h *realHead) Restart(t *testing.T) {
	t.Helper()
	h.end()
	if err := os.RemoveAll(h.dir + "/h"); err != nil { // otherwise the new head reads the old address
		t.Fatal(err)
	}
	h.startHead(t)
}

// end stops all processes. The head is the last.
func (h *realHead) end() {
	for _, p := range append([]*process{h.driver}, append(h.workers, h.head)...) {
		p.stop()
	}
	h.workers, h.driver = nil, nil
}

func (h *realHead) ray(t *testing.T, instance, group string, args []string) *process {
	t.Helper()
	cmd := exec.Command(filepath.Join(h.venv, "bin", "ray"), args...)
	cmd.Env = append(h.env[:len(h.env):len(h.env)], "RAY_CLOUD_INSTANCE_ID="+instance, "RAY_NODE_TYPE_NAME="+group)
	return startProcess(t, cmd, filepath.Join(h.dir, instance+".log"))
}

func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
