package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"heliostat.dev/heliostat/test/devcluster"
)

// commandVariable makes the test's program the command itself, also when the command starts itself in the background.
const commandVariable = "DEVCLUSTER_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(commandVariable) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// devclusterCommand runs the command and returns what it printed.
func devclusterCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), commandVariable+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestUpStatusAndDownOfANamedCluster(t *testing.T) {
	nodes := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(nodes, []byte("- {name: n, capacity: {cpu: '1', memory: 1Gi}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := []string{"up", "--name=command-test", "--no-operator", "--ray=", "--nodes=" + nodes}
	out, err := devclusterCommand(t, up...)
	if err != nil {
		t.Fatalf("up: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := devclusterCommand(t, "down", "--name=command-test"); err != nil {
			t.Errorf("down: %v: %s", err, out)
		}
	})
	if !strings.Contains(out, "Starting dev cluster \"command-test\": control plane and nodes;") {
		t.Errorf("up does not say what it waits for: %s", out)
	}
	if !strings.Contains(out, "export KUBECONFIG=") || !strings.Contains(out, " is ready after ") {
		t.Errorf("up printed: %s", out)
	}
	again, err := devclusterCommand(t, up...)
	if err != nil || !strings.Contains(again, "It already runs") || !strings.Contains(again, "export KUBECONFIG=") {
		t.Errorf("the second up: %v: %s", err, again)
	}
	status, err := devclusterCommand(t, "status")
	if err != nil || !strings.Contains(status, "command-test\t") || !strings.Contains(status, "1 nodes, 0 pods") {
		t.Errorf("status: %v: %s", err, status)
	}
	down, err := devclusterCommand(t, "down", "--name=command-test")
	if err != nil || !strings.Contains(down, "is stopped") {
		t.Errorf("down: %v: %s", err, down)
	}
	dir, err := directory("command-test")
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(dir + "*"); len(left) > 0 {
		t.Errorf("left after down: %v", left)
	}
}

func TestAClusterWhoseAPIServerDiesEndsAndSaysWhy(t *testing.T) {
	nodes := filepath.Join(t.TempDir(), "nodes.yaml")
	if err := os.WriteFile(nodes, []byte("- {name: n, capacity: {cpu: '1', memory: 1Gi}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	options, err := (&clusterFlags{name: "command-dies", nodes: nodes, ray: []string{}, noOperator: true}).options(io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	err = runCluster(t.Context(), options, func(c *devcluster.Cluster, _ time.Duration) {
		for _, pid := range processesOf(t, options.Dir, "kube-apiserver") {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		}
	})
	if err == nil || !strings.Contains(err.Error(), "cannot go on without kube-apiserver") || devcluster.Owner(options.Dir) != 0 {
		t.Errorf("%v", err)
	}
}

// processesOf are the processes of a program that have a cluster's directory on their command line.
func processesOf(t *testing.T, dir, program string) (pids []int) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		line, err := os.ReadFile(file)
		if first, rest, _ := strings.Cut(string(line), "\x00"); err == nil && filepath.Base(first) == program && strings.Contains(rest, dir) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				t.Fatal(err)
			}
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		t.Errorf("there is no %s of %s", program, dir)
	}
	return pids
}

func TestUpReportsWhyAClusterDoesNotStart(t *testing.T) {
	dir, err := directory("command-fails")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		os.RemoveAll(dir)
		os.Remove(outputFile(dir))
	})
	if err := os.WriteFile(filepath.Join(dir, "foreign"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := devclusterCommand(t, "up", "--name=command-fails", "--ray=")
	if err == nil || !strings.Contains(out, "foreign does not belong to a cluster") {
		t.Errorf("up: %v: %s", err, out)
	}
}

func TestNamesThatAreNoDirectoriesAreRefused(t *testing.T) {
	for _, name := range []string{"", "../x", "A", "a_b", strings.Repeat("a", 21)} {
		if dir, err := directory(name); err == nil {
			t.Errorf("name %q is accepted as %s", name, dir)
		}
	}
}

func TestPartsAreNamedAsTheCommandPrintsThem(t *testing.T) {
	got, err := parseNeeds([]string{"etcd", "ray-2.40.0", "kwok"})
	if err != nil {
		t.Fatal(err)
	}
	want := devcluster.Needs{Parts: []devcluster.Part{devcluster.Etcd, devcluster.Kwok}, Ray: []string{"2.40.0"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("needs (-want +got):\n%s", diff)
	}
	for _, name := range []string{"ray-1.0.0", "kubelet", "ray"} {
		if _, err := parseNeeds([]string{name}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want an error that names it", name, err)
		}
	}
}

func TestFlagsReachTheBackgroundUnchanged(t *testing.T) {
	flags := clusterFlags{name: "n", nodes: "f.yaml", ray: []string{}, images: map[string]string{"a:1": "/x"}, kwok: true}
	args := flags.args()
	for _, want := range []string{"--name=n", "--nodes=f.yaml", "--ray=", "--image=a:1=/x", "--kwok"} {
		if !strings.Contains(" "+strings.Join(args, " ")+" ", " "+want+" ") {
			t.Errorf("%s is missing in %q", want, args)
		}
	}
}
