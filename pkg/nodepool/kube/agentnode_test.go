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
		"metadata": map[string]any{"name": "gpu-1", "uid": "u-1", "annotations": o.annotations}})
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
	const path = "/api/v1/nodes/gpu-1 application/json-patch+json "
	for name, test := range map[string]struct {
		annotations map[string]string
		want        []string
	}{
		"without annotations": {nil, []string{path + `[{"op":"test","path":"/metadata/uid","value":"u-1"},{"op":"test","path":"/metadata/annotations","value":null},` +
			`{"op":"add","path":"/metadata/annotations","value":{"heliostat.dev/gpus":"new"}}]`}},
		"without this one": {map[string]string{"a": "b"}, []string{path + `[{"op":"test","path":"/metadata/uid","value":"u-1"},` +
			`{"op":"test","path":"/metadata/annotations/heliostat.dev~1gpus","value":null},{"op":"add","path":"/metadata/annotations/heliostat.dev~1gpus","value":"new"}]`}},
		"over an old one": {map[string]string{sharing.AgentAnnotation: "old"}, []string{path + `[{"op":"test","path":"/metadata/uid","value":"u-1"},` +
			`{"op":"test","path":"/metadata/annotations/heliostat.dev~1gpus","value":"old"},{"op":"add","path":"/metadata/annotations/heliostat.dev~1gpus","value":"new"}]`}},
		"over the same": {map[string]string{sharing.AgentAnnotation: "new"}, nil},
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

func TestARefusedTestOfTheReportsPatchSaysThatTheNodeChanged(t *testing.T) {
	for reason, test := range map[metav1.StatusReason]struct {
		status  int
		changed bool
	}{
		metav1.StatusReasonInvalid: {http.StatusUnprocessableEntity, true}, metav1.StatusReasonConflict: {http.StatusConflict, true},
		metav1.StatusReasonForbidden: {http.StatusForbidden, false},
	} {
		written, err := agentNode(t, &oneNode{refuse: test.status, reason: reason}).Publish(t.Context(), "new")
		if err == nil || written || strings.Contains(err.Error(), "annotating node gpu-1: it changed since it was read") != test.changed {
			t.Errorf("%s: written %v, %v", reason, written, err)
		}
	}
}
