package kube

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// oneNode answers for one node, and keeps the patches that it is sent.
type oneNode struct {
	annotations map[string]string
	refuse      int
	reason      metav1.StatusReason
	patches     []string
}

func (o *oneNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Method == http.MethodPatch {
		body, _ := io.ReadAll(r.Body)
		o.patches = append(o.patches, r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(body))
		if o.refuse != 0 {
			w.WriteHeader(o.refuse)
			_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": o.refuse, "reason": o.reason,
				"message": "the server rejected our request due to an error in our request"})
			return
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Node", "apiVersion": "v1",
		"metadata": map[string]any{"name": "gpu-1", "uid": "u-1", "resourceVersion": "7", "annotations": o.annotations}})
}

func agentNode(t *testing.T, o *oneNode) *AgentNode {
	t.Helper()
	server := httptest.NewServer(o)
	t.Cleanup(server.Close)
	node, err := NewAgentNode(&rest.Config{Host: server.URL}, "gpu-1")
	must(t, err)
	return node
}

func TestAnAgentsReportIsOnePatchOfTheNodeAsItWasRead(t *testing.T) {
	patch := []string{`/api/v1/nodes/gpu-1 application/merge-patch+json {"metadata":{"annotations":{"heliostat.dev/gpus":"new"},"resourceVersion":"7","uid":"u-1"}}`}
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"without annotations": {nil, patch},
		"over an old one":     {map[string]string{sharing.AgentAnnotation: "old"}, patch},
		"over the same":       {map[string]string{sharing.AgentAnnotation: "new"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := &oneNode{annotations: test.annotations}
			written, err := agentNode(t, o).Publish(t.Context(), "new")
			if err != nil || written != (len(test.want) > 0) {
				t.Errorf("written %v, error %v", written, err)
			}
			if diff := cmp.Diff(test.want, o.patches); diff != "" {
				t.Errorf("patches (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAConflictOfTheReportsPatchSaysThatTheNodeChanged(t *testing.T) {
	for reason, test := range map[metav1.StatusReason]struct {
		status  int
		changed bool
	}{
		metav1.StatusReasonConflict: {http.StatusConflict, true}, metav1.StatusReasonForbidden: {http.StatusForbidden, false},
	} {
		written, err := agentNode(t, &oneNode{refuse: test.status, reason: reason}).Publish(t.Context(), "new")
		if err == nil || written || strings.Contains(err.Error(), "annotating node gpu-1: it changed since it was read") != test.changed {
			t.Errorf("%s: written %v, %v", reason, written, err)
		}
	}
}
