package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/rig"
)

// head is a Ray head without Kubernetes, and its workers. All are local processes with addresses of their own.
type head struct {
	version, venv, dir string
	address            string
	env                []string
	process            *exec.Cmd
	workers            []*exec.Cmd
	wires              []wire // what actors has learned
}

const (
	headIP = "127.77.16.1"
	port   = "26377"
)

// startHead starts a head of a version of Ray and waits until its node is alive. The directory is short, because Ray
// has sockets in it whose paths have at most 107 bytes.
func startHead(ctx context.Context, version, venv string, env ...string) (*head, error) {
	dir, err := os.MkdirTemp("/tmp", "ps")
	if err != nil {
		return nil, fmt.Errorf("starting a head of Ray %s: %w", version, err)
	}
	h := &head{version: version, venv: venv, dir: dir, address: net.JoinHostPort(headIP, port), env: env}
	if err := h.launch(ctx); err != nil {
		h.stop()
		return nil, fmt.Errorf("starting a head of Ray %s: %w", version, err)
	}
	return h, nil
}

// launch starts the head's processes at the same address as before.
func (h *head) launch(ctx context.Context) error {
	var err error
	h.process, err = h.ray("head", "headgroup",
		"start", "--head", "--block", "--node-ip-address="+headIP, "--port="+port, "--temp-dir="+h.dir+"/h",
		"--num-cpus=2", "--num-gpus=0", "--memory=2147483648",
		"--object-store-memory=80000000", "--include-dashboard=false", "--dashboard-port=26378",
		"--disable-usage-stats", "--no-monitor")
	if err != nil {
		return err
	}
	err = h.await(ctx, func(s raydemand.State) bool { return len(s.Nodes) > 0 })
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(h.dir, "head.log")) // an empty log says enough
		return fmt.Errorf("%w; its log:\n%s", err, log)
	}
	return nil
}

// addWorker starts a worker and returns when the command runs.
func (h *head) addWorker() error {
	host := len(h.workers) + 2
	name := fmt.Sprintf("worker%d", host)
	worker, err := h.ray(name, "workers", "start", "--block", "--address="+h.address,
		fmt.Sprintf("--node-ip-address=127.77.16.%d", host), fmt.Sprintf("--temp-dir=%s/%d", h.dir, host),
		"--num-cpus=1", "--num-gpus=0", "--memory=1073741824", "--object-store-memory=80000000",
		"--disable-usage-stats")
	h.workers = append(h.workers, worker)
	return err
}

// ray runs Ray's command as a container of KubeRay does.
func (h *head) ray(instance, group string, arguments ...string) (*exec.Cmd, error) {
	log, err := os.OpenFile(filepath.Join(h.dir, instance+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(h.venv, "bin", "ray"), arguments...)
	own := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "RAY_") })
	cmd.Env = append(append(own, "HOME="+h.dir, "RAY_CLOUD_INSTANCE_ID="+instance, "RAY_NODE_TYPE_NAME="+group,
		"RAY_USAGE_STATS_KUBERAY_IN_USE=1", "RAY_USAGE_STATS_ENABLED=0", "RAY_enable_autoscaler_v2=1"), h.env...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, cmd.Start()
}

// await reads the state until it is as wanted.
func (h *head) await(ctx context.Context, as func(raydemand.State) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	client, err := gcs.Dial(gcs.Config{Address: h.address})
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		state, err := client.State(ctx)
		if err == nil && as(state) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("waiting for a state of the head: %w", ctx.Err()), err)
		case <-time.After(readEvery):
		}
	}
}

// driver connects a driver.
func (h *head) driver(ctx context.Context, name string) (*rig.Driver, error) {
	dir := filepath.Join(h.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	return rig.StartDriver(ctx, filepath.Join(h.venv, "bin", "python"), h.address, dir, h.env...)
}

// alive reports whether the GCS still answers 3 s after a call that may have ended it.
func (h *head) alive() bool {
	time.Sleep(3 * time.Second)
	conn, err := net.DialTimeout("tcp", h.address, time.Second)
	if err != nil {
		return false
	}
	return conn.Close() == nil
}

// gcsPID returns the process of the GCS, or 0.
func (h *head) gcsPID() int { return rig.ChildOf(h.process.Process.Pid, "gcs_server") }

// fall kills the head's processes.
func (h *head) fall() {
	end(h.process, syscall.SIGKILL)
	_ = os.RemoveAll(h.dir + "/h") // otherwise the next head reads the old address
}

// stop ends everything and removes the directory.
func (h *head) stop() {
	for _, p := range append(h.workers, h.process) {
		end(p, syscall.SIGTERM)
	}
	_ = os.RemoveAll(h.dir) // an agent may still write there; what it leaves is small
}

// end ends a process and after 10 s what is left of its group.
func end(p *exec.Cmd, signal syscall.Signal) {
	if p == nil || p.Process == nil {
		return
	}
	_ = p.Process.Signal(signal) // it may have ended
	killing := time.AfterFunc(10*time.Second, func() { _ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL) })
	defer killing.Stop()
	_ = p.Wait() // how it ended does not matter
	_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
}
