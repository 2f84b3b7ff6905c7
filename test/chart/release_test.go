package chart

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// onThePodsAddress is a post-renderer that makes Heliostat listen only on the pod's address. All pods use the ports of
// this machine, so several Heliostats and other programs would otherwise conflict.
type onThePodsAddress struct{}

// Run implements Helm's interface for post-renderers.
func (onThePodsAddress) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	text := rendered.String()
	for _, flag := range []string{"--listen=", "--metrics-bind-address=", "--health-probe-bind-address="} {
		if !strings.Contains(text, flag+":") {
			return nil, fmt.Errorf("rendering for pods that share an address: no %s:PORT is in what Helm made", flag)
		}
		text = strings.ReplaceAll(text, flag+":", flag+"$(POD_IP):")
	}
	return bytes.NewBufferString(text), nil
}

// patience is the limit of Helm's waits, and of others.
const patience = 6 * time.Minute

// release is an install through Helm's own SDK.
type release struct {
	*testing.T
	name, namespace string
	config          *action.Configuration
}

// newRelease connects Helm to the cluster.
func newRelease(t *testing.T, name, namespace string) *release {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig := lab.Kubeconfig()
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	config := new(action.Configuration)
	must(t, config.Init(flags, namespace, "secret", func(string, ...any) {}))
	return &release{t, name, namespace, config}
}

// install installs the chart and waits until it is ready. It uninstalls the chart when the test ends, and then no
// object may remain.
func (r *release) install(values string) {
	r.Helper()
	do := action.NewInstall(r.config)
	do.ReleaseName, do.Namespace, do.Wait, do.Timeout = r.name, r.namespace, true, patience
	do.PostRenderer = onThePodsAddress{}
	r.Cleanup(r.uninstall)
	if _, err := do.RunWithContext(r.Context(), loaded(r.T), valuesOf(r.T, values)); err != nil {
		r.Fatalf("installing: %v\n%s", err, r.state())
	}
}

// upgrade upgrades the release with the previous values and some additional ones.
func (r *release) upgrade(values string) {
	r.Helper()
	do := action.NewUpgrade(r.config)
	do.Namespace, do.Wait, do.Timeout, do.ResetThenReuseValues = r.namespace, true, patience, true
	do.PostRenderer = onThePodsAddress{}
	if _, err := do.RunWithContext(r.Context(), r.name, loaded(r.T), valuesOf(r.T, values)); err != nil {
		r.Fatalf("upgrading: %v\n%s", err, r.state())
	}
}

// rollback rolls back to an earlier revision.
func (r *release) rollback(revision int) {
	r.Helper()
	do := action.NewRollback(r.config)
	do.Version, do.Wait, do.Timeout = revision, true, patience
	if err := do.Run(r.name); err != nil {
		r.Fatalf("rolling back: %v\n%s", err, r.state())
	}
}

// uninstall removes the release. Callers call it after the test's context has ended.
func (r *release) uninstall() {
	do := action.NewUninstall(r.config)
	do.Wait, do.Timeout, do.IgnoreNotFound = true, patience, true
	if _, err := do.Run(r.name); err != nil {
		r.Errorf("uninstalling: %v", err)
	}
}

// pods returns the running Heliostat pods.
func (r *release) pods() []corev1.Pod {
	list, err := lab.Client().CoreV1().Pods(r.namespace).List(context.Background(), metav1.ListOptions{
		LabelSelector: "app.kubernetes.io/component=controller,app.kubernetes.io/instance=" + r.name,
	})
	if err != nil {
		r.Error(err)
		return nil
	}
	return slices.DeleteFunc(list.Items, func(p corev1.Pod) bool { return p.DeletionTimestamp != nil })
}

// state returns the reason why each pod is not ready, for the log of a failed test.
func (r *release) state() string {
	var b strings.Builder
	for _, pod := range r.pods() {
		fmt.Fprintf(&b, "pod %s is %s: %s\n", pod.Name, pod.Status.Phase, pod.Status.Message)
		for _, c := range pod.Status.ContainerStatuses {
			fmt.Fprintf(&b, "  %s: ready %v, %+v\n", c.Name, c.Ready, c.State)
		}
		log, err := lab.Client().CoreV1().Pods(r.namespace).GetLogs(pod.Name, &corev1.PodLogOptions{TailLines: new(int64(20))}).DoRaw(context.Background())
		fmt.Fprintf(&b, "%s %v\n", log, err)
	}
	return b.String()
}

// deployment returns the release's Deployment.
func (r *release) deployment() appsv1.Deployment {
	r.Helper()
	list, err := lab.Client().AppsV1().Deployments(r.namespace).List(r.Context(), metav1.ListOptions{LabelSelector: "app.kubernetes.io/instance=" + r.name})
	if err != nil || len(list.Items) != 1 {
		r.Fatalf("%d Deployments of release %s, %v", len(list.Items), r.name, err)
	}
	return list.Items[0]
}
