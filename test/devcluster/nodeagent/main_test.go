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

// agentKubeconfig makes the test binary an agent that can be killed; see TestSIGKILLOfTheAgentEndsItsPods.
const agentKubeconfig = "NODEAGENT_TEST_KUBECONFIG"

// cluster is one dev cluster for all tests, started by the first that asks for it.
var cluster = sync.OnceValues(func() (*devcluster.Cluster, error) {
	return devcluster.Start(context.Background(), devcluster.Options{Nodes: rayNodes, Out: os.Stderr})
})

// rayNodes are for the Ray cluster. The other tests bring nodes of their own.
var rayNodes = []nodeagent.NodeSpec{
	{Name: "gpu-0", Capacity: map[string]string{"cpu": "64", "memory": "256Gi", "nvidia.com/gpu": "4"}},
	{Name: "mig-0", Capacity: map[string]string{"cpu": "64", "memory": "256Gi", "nvidia.com/mig-1g.10gb": "7"}},
}

func TestMain(m *testing.M) {
	if kubeconfig := os.Getenv(agentKubeconfig); kubeconfig != "" {
		beAnAgent(kubeconfig, os.Args[1], os.Args[2])
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

// beAnAgent runs one node until it is killed, or until its standard input ends.
func beAnAgent(kubeconfig, node, dir string) {
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
		// Dev clusters take their blocks elsewhere; see TestMain's cluster for one that runs beside.
		PodCIDR:        fmt.Sprintf("127.%d.%d.0/24", 230+rand.IntN(20), rand.IntN(256)),
		MaxGracePeriod: 10 * time.Second,
		RestartBackoff: 200 * time.Millisecond,
		Log:            slog.New(slog.DiscardHandler),
	}
}

// world is a node of the test's own.
type world struct {
	*testing.T
	cluster *devcluster.Cluster
	agent   *nodeagent.Agent
	node    string
	dir     string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldWith(t, func(*nodeagent.Config) {})
}

// newWorldWith starts an agent whose configuration is changed first.
func newWorldWith(t *testing.T, change func(*nodeagent.Config)) *world {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a dev cluster, which -short leaves out")
	}
	c, err := cluster()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, cluster: c, node: fmt.Sprintf("test-%d", rand.IntN(1e9)), dir: t.TempDir()}
	cfg := agentConfig(c.Kubeconfig(), w.node, w.dir)
	cfg.APIServer = c.APIServer()
	cfg.CAFile = w.caFile()
	change(&cfg)
	if w.agent, err = nodeagent.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.agent.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		w.deleteNode()
	})
	return w
}

func (w *world) caFile() string {
	w.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", w.cluster.Kubeconfig())
	if err != nil {
		w.Fatal(err)
	}
	if config.CAFile != "" {
		return config.CAFile
	}
	file := filepath.Join(w.TempDir(), "ca.crt")
	if err := os.WriteFile(file, config.CAData, 0o600); err != nil {
		w.Fatal(err)
	}
	return file
}

func (w *world) deleteNode() {
	ctx := context.Background()
	pods, err := w.cluster.Client().CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + w.node})
	if err != nil {
		w.Error(err)
		return
	}
	now := *metav1.NewDeleteOptions(0)
	for _, pod := range pods.Items {
		if err := w.cluster.Client().CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, now); err != nil && !apierrors.IsNotFound(err) {
			w.Error(err)
		}
	}
	if err := w.cluster.Client().CoreV1().Nodes().Delete(ctx, w.node, now); err != nil {
		w.Error(err)
	}
}

// shell is a pod on the test's node with one container that runs a script.
func (w *world) shell(name, script string) *corev1.Pod {
	grace := int64(2)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &grace,
			NodeSelector:                  map[string]string{"test": w.node},
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers:                    []corev1.Container{w.container("c", script)},
		},
	}
}

func (w *world) container(name, script string) corev1.Container {
	return corev1.Container{Name: name, Image: "shell", Command: []string{"bash", "-c", script}}
}

func (w *world) create(pod *corev1.Pod) *corev1.Pod {
	w.Helper()
	created, err := w.cluster.Client().CoreV1().Pods(pod.Namespace).Create(w.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	return created
}

// until waits for the pod to be as the condition says and returns it; what describes the condition.
func (w *world) until(pod *corev1.Pod, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	var last *corev1.Pod
	err := wait.PollUntilContextTimeout(w.Context(), 50*time.Millisecond, 3*time.Minute, true, func(ctx context.Context) (bool, error) {
		got, err := w.cluster.Client().CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			return false, nil //nolint:nilerr // some tests restart the API server
		}
		last = got
		return holds(got), nil
	})
	if err != nil {
		w.Fatalf("pod %s: waiting for %s: %v; status: %+v", pod.Name, what, err, last.Status)
	}
	return last
}

func (w *world) untilPhase(pod *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	w.Helper()
	return w.until(pod, "phase "+string(phase), func(p *corev1.Pod) bool { return p.Status.Phase == phase })
}

// delete deletes the pod and waits until its object is gone; it returns how long that took.
func (w *world) delete(pod *corev1.Pod) time.Duration {
	w.Helper()
	begin := time.Now()
	pods := w.cluster.Client().CoreV1().Pods(pod.Namespace)
	if err := pods.Delete(w.Context(), pod.Name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(w.Context(), 20*time.Millisecond, 60*time.Second, true, func(ctx context.Context) (bool, error) {
		_, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err), nil
	})
	if err != nil {
		w.Fatalf("pod %s is still there: %v", pod.Name, err)
	}
	return time.Since(begin)
}

// logFile is what is kept of a container's first run, also when the pod is gone.
func (w *world) logFile(pod *corev1.Pod, container string) string {
	w.Helper()
	log, err := os.ReadFile(filepath.Join(w.dir, "logs", "default_"+pod.Name+"_"+string(pod.UID), container+"_0.log"))
	if err != nil {
		w.Fatal(err)
	}
	return string(log)
}
