package kube

import (
	"errors"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

func objectOf(t *testing.T, manifest string) map[string]any {
	t.Helper()
	object := map[string]any{}
	must(t, yaml.Unmarshal([]byte(manifest), &object))
	return object
}

const twoGroups = `
metadata: {uid: u-1, generation: 7, annotations: {heliostat.dev/mode: managed}}
spec:
  workerGroupSpecs:
  - {groupName: cpu, replicas: 2, minReplicas: 0, maxReplicas: 5}
  - {groupName: gpu, scaleStrategy: {workersToDelete: []}}
`

func version(v string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetNamespace(llm.Namespace)
	u.SetName(llm.Name)
	u.SetResourceVersion(v)
	return u
}

func TestReadsAreNeverOlderThanOwnWrites(t *testing.T) {
	tests := []struct {
		name            string
		cached          *unstructured.Unstructured
		raised          []string
		want, wantAgain string // the second read finds the cache at version 200
	}{
		{"nothing written", version("99"), nil, "99", "200"},
		{"the cache lags", version("99"), []string{"100"}, "100", "200"},
		{"the cache lags by digits", version("99"), []string{"1000"}, "1000", "1000"},
		{"the cache has caught up", version("100"), []string{"100"}, "100", "200"},
		{"the cache is ahead", version("101"), []string{"100"}, "101", "200"},
		{"an answer that arrives late does not lower the floor", version("99"), []string{"120", "110"}, "120", "200"},
		{"versions that are no numbers are not compared", version("abc"), []string{"100"}, "abc", "200"},
		{"the cluster is gone", nil, []string{"100"}, "", "200"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			f := newNewestObjects()
			for _, v := range test.raised {
				f.remember(version(v))
			}
			got := ""
			if object := f.newer(llm, test.cached); object != nil {
				got = object.GetResourceVersion()
			}
			again := f.newer(llm, version("200")).GetResourceVersion()
			if got != test.want || again != test.wantAgain {
				t.Errorf("read %q and then %q, want %q and %q", got, again, test.want, test.wantAgain)
			}
		})
	}
}

func TestAnObjectIsDecodedOncePerVersion(t *testing.T) {
	m := newDecodeCache(sharing.Reader{})
	first := m.decode(version("1"))
	m.byKey[llm] = judged{Decoded: decode.Decoded{Cluster: first.Cluster, Findings: []raydemand.Finding{{Code: "mark"}}}}
	if m.decode(version("1")).Findings[0].Code != "mark" {
		t.Error("the same version was decoded again")
	}
	if slices.ContainsFunc(m.decode(version("2")).Findings, func(f raydemand.Finding) bool { return f.Code == "mark" }) {
		t.Error("a new version was not decoded")
	}
	if m.drop(llm); len(m.byKey) != 0 {
		t.Error("a dropped cluster is kept")
	}
}

// A webhook that does not answer has nothing to do with the RayCluster, and the loop tries again soon.
func TestAWebhookThatDoesNotAnswerIsRecognized(t *testing.T) {
	down := apierrors.NewInternalError(errors.New(`failed calling webhook "vraycluster.kb.io": connection refused`))
	if err := classified(down); !errors.Is(err, nodepool.ErrWebhook) {
		t.Errorf("%v", err)
	}
	if err := classified(apierrors.NewInternalError(errors.New("etcd"))); errors.Is(err, nodepool.ErrWebhook) {
		t.Errorf("%v", err)
	}
}

func TestAnAPIServerThatCannotServeACallIsNoBug(t *testing.T) {
	for _, err := range []error{
		apierrors.NewInternalError(errors.New("etcdserver: leader changed")), apierrors.NewServiceUnavailable("starting"),
		apierrors.NewTooManyRequests("busy", 1), apierrors.NewTimeoutError("slow", 1),
	} {
		if !errors.Is(classified(err), nodepool.ErrUnserved) {
			t.Errorf("%v is not recognized", err)
		}
	}
	for _, err := range []error{apierrors.NewBadRequest("no"), apierrors.NewUnauthorized("no"), errors.New("no")} {
		if errors.Is(classified(err), nodepool.ErrUnserved) {
			t.Errorf("%v is recognized", err)
		}
	}
}
