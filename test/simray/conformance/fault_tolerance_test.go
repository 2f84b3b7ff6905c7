package conformance

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/simray"
)

// TestRealHeadWithRedisOutlivesItsGCS checks on a real head what simray's RestartGCS does. HELIOSTAT_REDIS_SERVER is
// the path of a redis-server program, which only this test needs.
func TestRealHeadWithRedisOutlivesItsGCS(t *testing.T) {
	program := os.Getenv("HELIOSTAT_REDIS_SERVER")
	if program == "" {
		t.Skip("HELIOSTAT_REDIS_SERVER is not set: it names a redis-server for GCS fault tolerance")
	}
	head := newReal(t, simray.Ray260)
	port := freePort(t)
	redis := startProcess(t, exec.Command(program, "--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--save", "", "--dir", head.dir), filepath.Join(head.dir, "redis.log"))
	t.Cleanup(redis.stop)
	head.env = append(head.env, fmt.Sprintf("RAY_REDIS_ADDRESS=127.0.0.1:%d", port), "RAY_external_storage_namespace=conformance")
	head.startHead(t)
	head.waitForRaylet(t)
	head.startDriver(t)
	h := connect(t, head)
	head.Start(t, gpuWorker)
	worker := h.node(t, gpuWorker.Instance, raydemand.Idle)
	head.RequestResources(t, []res{{"GPU": 3}}, nil)
	h.demands(t, "at least 1 x {GPU 3}")
	before := h.state(t)

	head.killGCS(t)
	head.driver.stop() // the raylet of the driver, which is the head's, has ended
	head.startHead(t)
	var after raydemand.State
	h.eventually(t, func() string {
		var err error
		after, err = h.ours.State(t.Context())
		switch {
		case errors.Is(err, raydemand.ErrUnavailable):
			return err.Error()
		case err != nil:
			t.Fatal(err)
		}
		return ""
	})
	if after.Session != before.Session || after.SameGCS(before) {
		t.Errorf("session %s version %d after %s version %d, want the same session, counted from zero", after.Session, after.Version, before.Session, before.Version)
	}
	if len(after.Demand.Constraint) > 0 {
		t.Errorf("request_resources %+v: the constraint is in no Redis", after.Demand.Constraint)
	}
	h.eventually(t, func() string {
		living := 0
		for _, n := range h.state(t).Nodes {
			if n.Head && n.Status != raydemand.Dead {
				living++
			}
		}
		if again := h.node(t, gpuWorker.Instance, raydemand.Idle); again.ID != worker.ID {
			t.Fatalf("the worker is node %s now, was %s", again.ID, worker.ID)
		}
		if living != 1 {
			return fmt.Sprintf("%d living head nodes", living)
		}
		return ""
	})
}

// killGCS kills the GCS process. Then ray start stops the rest of the head.
func (h *realHead) killGCS(t *testing.T) {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for _, path := range processes {
		line, err := os.ReadFile(path)
		arguments := strings.Split(string(line), "\x00")
		if err != nil || filepath.Base(arguments[0]) != "gcs_server" || !strings.Contains(string(line), fmt.Sprintf("--gcs_server_port=%d\x00", h.port)) {
			continue // the process has ended, or belongs to another program
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatalf("killing GCS %d: %v", pid, err)
		}
		killed++
	}
	if killed != 1 {
		t.Fatalf("killed %d GCS processes, want 1", killed)
	}
	<-h.head.done
	h.head.stop()
	if err := os.RemoveAll(h.dir + "/h"); err != nil { // a new container has none of these files
		t.Fatal(err)
	}
}
