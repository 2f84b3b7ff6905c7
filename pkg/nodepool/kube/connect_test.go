package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// discovered is an API server that knows which resources exist, and nothing else. It answers the first calls about the
// group of RayClusters with a status.
func discovered(t *testing.T, failing int32, status int) *rest.Config {
	t.Helper()
	var calls atomic.Int32
	resources := func(version string, names ...string) metav1.APIResourceList {
		list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version}
		for _, name := range names {
			plural := strings.ToLower(name) + "s"
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: plural, Kind: name, Namespaced: name != "Node" && name != "Namespace"})
		}
		return list
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v1 := metav1.GroupVersionForDiscovery{GroupVersion: "ray.io/v1", Version: "v1"}
		ray := metav1.APIGroup{Name: "ray.io", Versions: []metav1.GroupVersionForDiscovery{v1}, PreferredVersion: v1}
		if strings.HasPrefix(r.URL.Path, "/apis/ray.io") && calls.Add(1) <= failing {
			http.Error(w, "not now", status)
			return
		}
		var answer any
		switch r.URL.Path {
		case "/version":
			answer = map[string]string{"major": "1"}
		case "/api":
			answer = metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}, Versions: []string{"v1"}}
		case "/apis":
			answer = metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{ray}}
		case "/apis/ray.io":
			answer = ray
		case "/apis/ray.io/v1":
			answer = resources("ray.io/v1", "RayCluster", "RayJob", "RayService")
		case "/api/v1":
			answer = resources("v1", "Pod", "Node", "Namespace", "ConfigMap", "Event")
		default:
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

func TestAStartOutlivesAnAPIServerThatFailsAfterItsFirstAnswer(t *testing.T) {
	for _, c := range []struct {
		failing int32
		status  int
		retries int
		says    string
	}{
		{0, 0, 0, ""},
		{1, http.StatusInternalServerError, 1, ""},
		{1, http.StatusTooManyRequests, 1, ""},
		{1, http.StatusNotFound, 1, ""}, // an API server that starts does not serve custom resources for a moment
		{1000, http.StatusNotFound, 1, "making the manager"},
	} {
		t.Run(fmt.Sprint(c.failing, " answers of ", c.status), func(t *testing.T) {
			var log bytes.Buffer
			logger := slog.New(slog.NewTextHandler(&log, nil))
			_, err := Connect(t.Context(), discovered(t, c.failing, c.status), Options{Logger: logger}, logger)
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("error %v, want %q", err, c.says)
			}
			if retries := strings.Count(log.String(), "does not answer which resources exist"); retries != c.retries {
				t.Errorf("%d retries, want %d: %s", retries, c.retries, log.String())
			}
		})
	}
}
