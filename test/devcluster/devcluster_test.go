package devcluster

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// holdVariable makes the test's program a process that holds a cluster until it is killed.
const holdVariable = "DEVCLUSTER_TEST_HOLD"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) != "" {
		holdCluster()
	}
	os.Exit(m.Run())
}

// holdCluster starts a cluster with one pod, prints its directory and waits to be killed.
func holdCluster() {
	ctx := context.Background()
	c, err := Start(ctx, Options{Nodes: []nodeagent.NodeSpec{oneNode}, Ray: []string{}, Images: machineImage, NoOperator: true})
	if err == nil {
		_, err = c.Client().CoreV1().Pods("default").Create(ctx, sleepingPod("sleeper"), metav1.CreateOptions{})
	}
	if err == nil {
		err = poll(ctx, 50*time.Millisecond, func(ctx context.Context) error { return podRuns(ctx, c, "sleeper") })
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(c.Dir())
	select {}
}

var (
	oneNode      = nodeagent.NodeSpec{Name: "node-0", Capacity: map[string]string{"cpu": "4", "memory": "8Gi"}}
	machineImage = nodeagent.Images{"machine": ""}
)

// sleepingPod is a pod that runs a minute of sleep on this machine.
func sleepingPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "machine", Command: []string{"/bin/bash", "-c", "sleep 3600; true"}}}},
	}
}

// podRuns returns an error unless a pod is running.
func podRuns(ctx context.Context, c *Cluster, name string) error {
	pod, err := c.Client().CoreV1().Pods("default").Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if pod.Status.Phase != corev1.PodRunning {
		return fmt.Errorf("pod %s is %q", name, pod.Status.Phase)
	}
	return nil
}

// startCluster starts a cluster that is stopped with the test, and says how long it took.
func startCluster(t *testing.T, options Options) *Cluster {
	t.Helper()
	options.Out = t.Output()
	began := time.Now()
	c, err := Start(t.Context(), options)
	must(t, err)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := c.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
		expectNothingLeft(t, c.Dir())
	})
	return c
}

// expectNothingLeft fails the test if a cluster's directory or one of its processes is there.
func expectNothingLeft(t *testing.T, dir string) {
	t.Helper()
	if exists(dir) {
		t.Errorf("%s is still there", dir)
	}
	if left := processesOf(dir); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// processesOf lists the processes whose command line or environment names a cluster's directory.
func processesOf(dir string) []string {
	var found []string
	entries, _ := filepath.Glob("/proc/[0-9]*")
	for _, entry := range entries {
		if entry == "/proc/"+strconv.Itoa(os.Getpid()) {
			continue
		}
		env, _ := os.ReadFile(entry + "/environ")
		args, _ := os.ReadFile(entry + "/cmdline")
		if strings.Contains(string(env)+string(args), dir) {
			found = append(found, strings.ReplaceAll(string(args), "\x00", " "))
		}
	}
	return found
}

// within waits for a condition that must come true; a busy machine takes its time.
func within(t *testing.T, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	must(t, poll(ctx, 50*time.Millisecond, check))
}

func TestTwoClustersRunSideBySideAndKnowNothingOfEachOther(t *testing.T) {
	options := Options{Nodes: []nodeagent.NodeSpec{}, NoOperator: true}
	started := make(chan *Cluster, 1)
	go func() {
		c, err := Start(t.Context(), options)
		if err != nil {
			t.Error(err)
		}
		started <- c
	}()
	first, second := startCluster(t, options), <-started
	if second == nil {
		t.FailNow()
	}
	stopped := false
	t.Cleanup(func() {
		if !stopped {
			second.Stop(context.WithoutCancel(t.Context()))
		}
	})
	if first.Host() == second.Host() || first.Dir() == second.Dir() {
		t.Errorf("both use %s and %s", first.Host(), first.Dir())
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "only-here"}}
	if _, err := first.Client().CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.Client().CoreV1().Namespaces().Get(t.Context(), "only-here", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the second cluster answers %v for a namespace of the first", err)
	}
	if err := second.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	stopped = true
	expectNothingLeft(t, second.Dir())
	if _, err := first.Client().CoreV1().Namespaces().Get(t.Context(), "only-here", metav1.GetOptions{}); err != nil {
		t.Errorf("the first cluster after the end of the second: %v", err)
	}
}

func TestEveryPartCanBeKilledAndComesBackOnTheSameData(t *testing.T) {
	c := startCluster(t, Options{Nodes: []nodeagent.NodeSpec{}})
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept"}}
	if _, err := c.Client().CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	parts := []Part{Etcd, APIServer, ControllerManager, Scheduler, Operator}
	for _, part := range parts {
		must(t, c.KillPart(part))
		if slices.Contains(c.Running(), part) {
			t.Errorf("%s runs after its end", part)
		}
		began := time.Now()
		must(t, c.RestartPart(t.Context(), part))
		t.Logf("%s is back after %s", part, time.Since(began).Round(time.Millisecond))
		within(t, func(ctx context.Context) error {
			_, err := c.Client().CoreV1().ConfigMaps("default").Get(ctx, "kept", metav1.GetOptions{})
			return err
		})
	}
	slices.Sort(parts)
	if diff := cmp.Diff(parts, c.Running()); diff != "" {
		t.Errorf("running parts (-want +got):\n%s", diff)
	}
	select {
	case death := <-c.Deaths():
		t.Errorf("%s died unasked: %v", death.Part, death.Err)
	default:
	}
}

func TestAPartThatDiesUnaskedIsReported(t *testing.T) {
	c := startCluster(t, Options{Nodes: []nodeagent.NodeSpec{}, NoOperator: true})
	must(t, syscall.Kill(c.processes[Scheduler].cmd.Process.Pid, syscall.SIGKILL))
	select {
	case death := <-c.Deaths():
		if death.Part != Scheduler || !strings.Contains(death.Err.Error(), "killed") {
			t.Errorf("reported: %s: %v", death.Part, death.Err)
		}
	case <-time.After(time.Minute):
		t.Error("nothing is reported")
	}
}

func TestACanceledStartLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	dir := filepath.Join(t.TempDir(), "c")
	if c, err := Start(ctx, Options{Dir: dir, Nodes: []nodeagent.NodeSpec{}}); err == nil {
		c.Stop(t.Context())
		t.Fatal("a cluster was ready within a second, so nothing was canceled")
	}
	expectNothingLeft(t, dir)
}

func TestAKilledHolderLeavesNoProcessAndNoDirectory(t *testing.T) {
	self, err := os.Executable()
	must(t, err)
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), holdVariable+"=1")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	var dir string
	_, scanErr := fmt.Fscanln(stdout, &dir)
	if scanErr == nil && len(processesOf(dir)) < 5 {
		t.Errorf("the cluster has only these processes, so the test would prove little: %v", processesOf(dir))
	}
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); scanErr != nil {
		t.Fatalf("the holder started no cluster: %v: %s", err, stderr.String())
	}
	within(t, func(context.Context) error {
		if left := processesOf(dir); len(left) > 0 {
			return fmt.Errorf("processes are left: %v", left)
		}
		if exists(dir) {
			return fmt.Errorf("%s is left", dir)
		}
		return nil
	})
}
