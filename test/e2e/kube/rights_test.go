package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube"
	"heliostat.dev/heliostat/pkg/nodepool/kube/kueue"
	"heliostat.dev/heliostat/pkg/nodepool/kube/nodes"
	"heliostat.dev/heliostat/test/rig"
)

func leading(namespace string) kube.Options {
	return kube.Options{LeaderElection: true, LeaseNamespace: namespace, LeaseName: "heliostat"}
}

// hold makes another process the holder of the lease for a long time.
func (s *scene) hold(holder string) {
	s.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{
		"holderIdentity": holder, "leaseDurationSeconds": 60, "renewTime": metav1.NowMicro(), "acquireTime": metav1.NowMicro(),
	}})
	must(s, err)
	if _, err := lab.Client().CoordinationV1().Leases(s.namespace).Patch(s.Context(), "heliostat", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func TestOnlyTheLeaderWritesAndStops(t *testing.T) {
	t.Parallel()
	s := stage(t, "lease")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	first, ended := s.managerWith(leading(s.namespace), nil)
	s.until("the first to lead", first.Leading)
	second, _ := s.managerWith(leading(s.namespace), nil)
	change := s.targets(s.read(second, "llm"), map[string]int{"gpu": 1})
	if _, err := second.Apply(t.Context(), change); !errors.Is(err, nodepool.ErrNotLeading) {
		t.Errorf("a candidate writes: error is %v, want ErrNotLeading", err)
	}
	if _, err := first.Apply(t.Context(), change); err != nil {
		t.Errorf("the leader cannot write: %v", err)
	}

	s.hold("somebody-else")
	start := time.Now()
	s.until("the first to stop leading", func() bool { return !first.Leading() })
	t.Logf("it noticed after %v", time.Since(start).Round(time.Millisecond))
	if _, err := first.Apply(t.Context(), s.targets(s.read(first, "llm"), map[string]int{"gpu": 1})); !errors.Is(err, nodepool.ErrNotLeading) {
		t.Errorf("it still writes: error is %v, want ErrNotLeading", err)
	}
	select {
	case err := <-ended:
		if err == nil {
			t.Error("Start ended without an error although the lease was lost")
		}
	case <-time.After(patience):
		t.Error("Start did not end")
	}
}

func TestTheNextOneLeadsSoonAfterAnOrderlyEnd(t *testing.T) {
	t.Parallel()
	s := stage(t, "handover")
	ctx, cancel := context.WithCancel(t.Context())
	options := leading(s.namespace)
	options.Namespaces, options.Logger = []string{s.namespace}, slog.New(slog.NewTextHandler(io.Discard, nil))
	first, err := kube.NewManager(lab.RESTConfig(), options)
	must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := first.Start(ctx, func(context.Context, nodepool.ClusterKey, bool) time.Duration { return 0 }); err != nil {
			t.Error(err)
		}
	}()
	s.until("the first to lead", first.Leading)
	second := s.manager(leading(s.namespace))
	held := s.holder()
	cancel()
	<-done
	if now := s.holder(); held == "" || now == held {
		t.Errorf("the lease is held by %q after the end of %q, want that it is released", now, held)
	}
	s.until("the second to lead", second.Leading)
}

// holder returns the holder of the lease.
func (s *scene) holder() string {
	s.Helper()
	lease, err := lab.Client().CoordinationV1().Leases(s.namespace).Get(s.Context(), "heliostat", metav1.GetOptions{})
	must(s, err)
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// sidecarOf returns a config with the rights of a RayCluster's sidecar, after KubeRay has created its ServiceAccount.
func (s *scene) sidecarOf(cluster string) *rest.Config {
	s.Helper()
	config := rest.AnonymousClientConfig(lab.RESTConfig())
	s.until("the ServiceAccount that KubeRay makes", func() bool {
		reply, err := lab.Client().CoreV1().ServiceAccounts(s.namespace).CreateToken(s.Context(), cluster, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err == nil {
			config.BearerToken = reply.Status.Token
		}
		return err == nil
	})
	return config
}

// TestTheSidecarFormLivesWithKubeRaysRole uses the Role that KubeRay creates for a sidecar: get, list, watch and patch
// on pods, get and patch on rayclusters. The sidecar needs no other right.
func TestTheSidecarFormLivesWithKubeRaysRole(t *testing.T) {
	t.Parallel()
	s := stage(t, "sidecar")
	manifest := rig.Cluster{Namespace: s.namespace, Name: "llm", InTree: true, Groups: []rig.Group{{Name: "gpu", Max: 9}}}.Manifest()
	s.createAs(manifest)
	config, key := s.sidecarOf("llm"), s.key("llm")
	m, err := kube.NewManager(config, kube.Options{Single: &key, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := m.Start(ctx, func(context.Context, nodepool.ClusterKey, bool) time.Duration { return 0 }); err != nil {
			t.Error(err)
		}
	}()
	defer func() { cancel(); <-done }()
	s.until("its workers run", m.Leading)
	cluster := s.read(m, "llm")
	s.change(m, s.targets(cluster, map[string]int{"gpu": 2}))
	s.until("two workers in its cache", func() bool { return len(s.read(m, "llm").Workers) == 2 })
	if _, err := m.Fresh(t.Context(), key); err != nil {
		t.Error(err)
	}
	s.until("the head pod with the sidecar", func() bool { return s.read(m, "llm").Head.Pod != "" })
	if sidecar := s.read(m, "llm").Head.Sidecar; sidecar == nodepool.NoAutoscaler {
		t.Error("the sidecar in the head pod is not seen")
	}
	m.Event(cluster, true, "Test", "goes to the log, which needs no right")
	// The poll detects a change by another writer.
	s.patch("llm", types.JSONPatchType, `[{"op":"replace","path":"/spec/workerGroupSpecs/0/maxReplicas","value":4}]`)
	s.until("the poll to see a change", func() bool { return s.read(m, "llm").Groups[0].Max == 4 })
}

// TestTheFleetLivesWithTheRightsInDeploy checks that the rights in deploy are enough for everything that the fleet
// does, and that none of them allows a write to a pod.
func TestTheFleetLivesWithTheRightsInDeploy(t *testing.T) {
	t.Parallel()
	s := deployment(t)
	applyFile(t, "../../../deploy/rbac.yaml")
	config := rest.CopyConfig(lab.RESTConfig())
	config.Impersonate.UserName = "system:serviceaccount:heliostat:heliostat"
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	if _, err := lab.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token"}, Data: map[string][]byte{"auth_token": []byte("abc")},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	m, _ := s.managerAs(config, leading(s.namespace), nil)
	s.until("it to lead", m.Leading)
	if _, err := m.Apply(t.Context(), s.targets(s.read(m, "llm"), map[string]int{"gpu": 2})); err != nil {
		t.Error(err)
	}
	s.until("two workers in its cache", func() bool { return len(s.read(m, "llm").Workers) == 2 })
	s.say("cluster-autoscaler", "TriggeredScaleUp", "pod triggered scale-up: [{gpu 0->1 (max: 1)}]", nodepool.Worker{Pod: "another"})
	s.until("the Events of node autoscalers to be read", func() bool { return s.read(m, "llm").ProvisionersSeen })
	cluster := s.read(m, "llm")
	if cluster.Groups[0].Landing == nil {
		t.Error("nothing is known of the nodes")
	}
	if finding(cluster, nodes.CeilingsUnknown) || finding(cluster, kube.NamespacesForbidden) || cluster.Pools == nil {
		t.Errorf("findings %+v, pools %v", cluster.Findings, cluster.Pools)
	}
	s.readCeilings(config)
	cluster.Auth = nodepool.Auth{Required: true, TokenSecret: "token", TokenKey: "auth_token"}
	if got, err := m.Credentials(t.Context(), cluster); err != nil || got.Token != "abc" {
		t.Errorf("token %q, %v", got.Token, err)
	}
	if err := m.SetResourceRequests(t.Context(), s.key("llm"), nil, time.Time{}); err != nil {
		t.Error(err)
	}
	child := s.childOf("train")
	if _, err := m.Apply(t.Context(), s.targets(s.read(m, child), map[string]int{"cpu": 1})); err != nil || finding(s.read(m, child), kueue.Unread) {
		t.Errorf("a RayCluster of a RayJob: %v, findings %+v; want the RayJob to be read", err, s.read(m, child).Findings)
	}
	m.Event(cluster, true, "Rights", "a limit stands in the way")
	s.until("the Event", func() bool {
		list, err := lab.Client().CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Rights"})
		return err == nil && len(list.Items) == 1
	})
	client, err := kubernetes.NewForConfig(config)
	must(t, err)
	err = client.CoreV1().Pods(s.namespace).Delete(t.Context(), cluster.Workers[0].Pod, metav1.DeleteOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("deleting a pod: %v, want it to be forbidden", err)
	}
}

// readCeilings reads the ceilings that node autoscalers report for pools. Neither is installed here, which is a
// different result from missing rights to read them.
func (s *scene) readCeilings(config *rest.Config) {
	s.Helper()
	typed, err := kubernetes.NewForConfig(config)
	must(s, err)
	untyped, err := dynamic.NewForConfig(config)
	must(s, err)
	if _, err := typed.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(s.Context(), "cluster-autoscaler-status", metav1.GetOptions{}); err != nil && !apierrors.IsNotFound(err) {
		s.Errorf("reading the Cluster Autoscaler's status: %v", err)
	}
	nodePools := schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}
	if _, err := untyped.Resource(nodePools).List(s.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		s.Errorf("listing NodePools: %v", err)
	}
}

// TestMissingRightsAreReportedAndStartupEndsOnASignal checks that a process without the right to list reports why it is
// not ready, and exits on a signal.
func TestMissingRightsAreReportedAndStartupEndsOnASignal(t *testing.T) {
	t.Parallel()
	s := stage(t, "nobody")
	config := rest.CopyConfig(lab.RESTConfig())
	config.Impersonate.UserName = "nobody"
	m, err := kube.NewManager(config, kube.Options{Logger: slog.New(slog.DiscardHandler)})
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- m.Start(ctx, func(context.Context, nodepool.ClusterKey, bool) time.Duration { return 0 })
	}()
	s.until("it to say that it may not", func() bool { return m.WatchError() != nil })
	if err := m.WatchError(); !apierrors.IsForbidden(err) || m.Ready() {
		t.Errorf("error is %v, ready %v; want it to be forbidden", err, m.Ready())
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Error("it still runs a minute after it was told to end")
	}
}

// applyFile creates the objects of a manifest.
func applyFile(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	for _, document := range strings.Split(string(text), "\n---\n") {
		object := &unstructured.Unstructured{}
		must(t, yaml.Unmarshal([]byte(document), &object.Object))
		resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
		if _, err := lab.Dynamic().Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCredentialsComeFromTheSecretsOfTheCluster(t *testing.T) {
	t.Parallel()
	s := stage(t, "secrets")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	cluster := s.read(m, "llm")
	cluster.Auth = nodepool.Auth{Required: true, TokenSecret: "token", TokenKey: "auth_token", TLSSecret: "certs"}
	if _, err := m.Credentials(t.Context(), cluster); err == nil {
		t.Error("a missing Secret is no error")
	}
	for name, data := range map[string]map[string][]byte{
		"token": {"auth_token": []byte("abc\n")},
		"certs": {"ca.crt": []byte("CA"), "tls.crt": []byte("CERT"), "tls.key": []byte("KEY")},
	} {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
		if _, err := lab.Client().CoreV1().Secrets(s.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := m.Credentials(t.Context(), cluster)
	want := fmt.Sprintf("abc CA CERT KEY %s", cluster.Head.ServiceFQDN)
	if text := fmt.Sprintf("%s %s %s %s %s", got.Token, got.CA, got.Cert, got.Key, got.ServerName); err != nil || text != want {
		t.Errorf("credentials are %q, %v; want %q", text, err, want)
	}
}

func TestEventsStandOnTheRayCluster(t *testing.T) {
	t.Parallel()
	s := stage(t, "events")
	s.create("llm", rig.Group{Name: "gpu", Max: 9})
	m := s.manager(kube.Options{})
	cluster := s.read(m, "llm")
	m.Event(cluster, true, "Capped", "a limit stands in the way")
	s.until("the Event", func() bool {
		list, err := lab.Client().CoreV1().Events(s.namespace).List(t.Context(), metav1.ListOptions{FieldSelector: "reason=Capped"})
		must(t, err)
		return len(list.Items) == 1 && list.Items[0].Type == corev1.EventTypeWarning && string(list.Items[0].InvolvedObject.UID) == cluster.UID
	})
}
