package nodeagent_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"

	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// agentKubeconfig makes the test binary run an agent that a test can kill; see TestSIGKILLOfTheAgentEndsItsPods.
const agentKubeconfig = "NODEAGENT_TEST_KUBECONFIG"

// cluster is the dev cluster of all tests. The first test that needs it starts it.
var cluster = sync.OnceValues(func() (*devcluster.Cluster, error) {
	return devcluster.Start(context.Background(), devcluster.Options{Nodes: rayNodes, Out: os.Stderr})
})

// rayNodes are for the Ray cluster. The other tests make their own nodes.
var rayNodes = []nodeagent.NodeSpec{
	{Name: "gpu-0", Capacity: map[string]string{"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "4"}},
	{Name: "mig-0", Capacity: map[string]string{"cpu": "64", "memory": "256Gi", "nvidia.com/mig-1g.10gb": "7"}},
}

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(agentKubeconfig); kubeconfig != "" {
		runAgent(kubeconfig, os.Args[1], os.Args[2])
		return
	}
	started := false
	start := cluster
	cluster = func() (*devcluster.Cluster, error) { started = true; return start() }
	code := m.Run()
	if started {
		if c, err := cluster(); err == nil {
			if err := c.Stop(context.Background()); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
		}
	}
	os.Exit(code)
}

// runAgent runs one node until a signal kills it or its standard input ends.
func runAgent(kubeconfig, node, dir string) {
	agent, err := nodeagent.Start(context.Background(), agentConfig(kubeconfig, node, dir))
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // ends with the test
	if err := agent.Stop(context.Background()); err != nil {
		fmt.Println(err)
	}
}

func agentConfig(kubeconfig, node, dir string) nodeagent.Config {
	return nodeagent.Config{
		Kubeconfig: kubeconfig,
		Nodes: []nodeagent.NodeSpec{{
			Name: node, Labels: map[string]string{"test": node},
			Taints:   []corev1.Taint{{Key: "test", Value: node, Effect: corev1.TaintEffectNoSchedule}},
			Capacity: map[string]string{"cpu": "64", "memory": "64Gi"},
		}},
		Images: nodeagent.Images{"shell": ""},
		Dir:    dir,
		// Dev clusters use other blocks.
		PodCIDR:        fmt.Sprintf("127.%d.%d.0/24", 230+rand.IntN(20), rand.IntN(256)),
		MaxGracePeriod: 30 * time.Second,
		RestartBackoff: 200 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
	}
}

// fixture is an agent with one node, for one test.
type fixture struct {
	*testing.T
	cluster *devcluster.Cluster
	agent   *nodeagent.Agent
	node    string
	dir     string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return newFixtureWith(t, func(*nodeagent.Config) {})
}

// newFixtureWith starts an agent after change has changed its configuration.
func newFixtureWith(t *testing.T, change func(*nodeagent.Config)) *fixture {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a dev cluster; run without -short")
	}
	c, err := cluster()
	must(t, err)
	f := &fixture{T: t, cluster: c, node: fmt.Sprintf("test-%d", rand.IntN(1e9)), dir: t.TempDir()}
	cfg := agentConfig(c.Kubeconfig(), f.node, f.dir)
	cfg.APIServer = c.APIServer()
	cfg.CAFile = f.caFile()
	change(&cfg)
	if f.agent, err = nodeagent.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.agent.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		f.deleteNode()
	})
	return f
}

func (f *fixture) caFile() string {
	f.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", f.cluster.Kubeconfig())
	must(f, err)
	if config.CAFile != "" {
		return config.CAFile
	}
	file := filepath.Join(f.TempDir(), "ca.crt")
	must(f, os.WriteFile(file, config.CAData, 0o600))
	return file
}

func (f *fixture) deleteNode() {
	ctx := context.Background()
	pods, err := f.cluster.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + f.node})
	if err != nil {
		f.Error(err)
		return
	}
	now := *metav1.NewDeleteOptions(0)
	for _, pod := range pods.Items {
		if err := f.cluster.Client().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now); err != nil && !apierrors.IsNotFound(err) {
			f.Error(err)
		}
	}
	if err := f.cluster.Client().CoreV1().Nodes().Delete(ctx, f.node, now); err != nil {
		f.Error(err)
	}
}

// shell returns a pod for the test's node with one container that runs a script.
func (f *fixture) shell(name, script string) *corev1.Pod {
	grace := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			NodeSelector:                  map[string]string{"test": f.node},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:                    []corev1.Container{f.container("c", script)},
		},
	}
}

func (f *fixture) container(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: "shell", Command: []string{"bash", "-c", script}}
}

func (f *fixture) create(pod *corev1.Pod) *corev1.Pod {
	f.Helper()
	created, err := f.cluster.Client().CoreV1().Pods(pod.Namespace).Create(f.Context(), pod, metav1.CreateOptions{})
	must(f, err)
	return created
}

// until waits for a condition on the pod and returns the pod. what describes the condition.
func (f *fixture) until(pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	f.Helper()
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(f.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := f.cluster.Client().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // some tests restart the API server
		}
		last = got
		return holds(got), nil
	})
	if err != nil {
		f.Fatalf("pod %s: waiting for %s: %v; status: %+v", pod.Name, what, err, last.Status)
	}
	return last
}

func (f *fixture) untilPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	f.Helper()
	return f.until(pod, "phase "+string(phase), func(p *corev1.Pod) bool { return p.Status.Phase == phase })
}

// delete deletes the pod and returns how long it took until the API server had deleted the object.
func (f *fixture) delete(pod *corev1.Pod) time.Duration {
	f.Helper()
	begin := time.Now()
	pods := f.cluster.Client().CoreV1().Pods(pod.Namespace)
	must(f, pods.Delete(f.Context(), pod.Name, metav1.DeleteOptions{}))
	err := wait.PollUntilContextTimeout(f.Context(), 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		f.Fatalf("pod %s still exists: %v", pod.Name, err)
	}
	return time.Since(begin)
}

// logFile returns the log of a container's first run, which stays after the pod is deleted.
func (f *fixture) logFile(pod *corev1.Pod, container string) string {
	f.Helper()
	log, err := os.ReadFile(filepath.Join(f.dir, "logs", "default_"+pod.Name+"_"+string(pod.UID), container+"_0.log"))
	must(f, err)
	return string(log)
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
