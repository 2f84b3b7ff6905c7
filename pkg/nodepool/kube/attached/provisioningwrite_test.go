package attached

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// anyServed serves v1.
type anyServed struct {
	discovery.ServerResourcesInterface
}

func (anyServed) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, nil
}

var requestKind = schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}

// requestWriter writes to an API server that has these objects. If rejects is true, it refuses ProvisioningRequests.
func requestWriter(rejects bool, objects ...runtime.Object) (*Provisioning, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{requestKind: "ProvisioningRequestList", templates: "PodTemplateList"},
		objects...)
	client.PrependReactor("create", "provisioningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return rejects, nil, apierrors.NewForbidden(requestKind.GroupResource(), "heliostat-1", nil)
	})
	return NewProvisioning(Config{Client: client, Discovery: anyServed{}}), client
}

var askedRequest = nodepool.ProvisioningRequest{Name: "heliostat-1", Group: "gpu", Pods: 4}

// schedulers returns those of the PodTemplates that are there, in the order of their names.
func schedulers(t *testing.T, client *dynamicfake.FakeDynamicClient) (found []string) {
	t.Helper()
	list, err := client.Resource(templates).Namespace("ml").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pods := range list.Items {
		name, _, _ := unstructured.NestedString(pods.Object, "template", "spec", "schedulerName")
		found = append(found, name)
	}
	return found
}

func TestARequestNeverGetsTheTemplateOfAnEarlierOne(t *testing.T) {
	w, client := requestWriter(false)
	old := requestingCluster()
	groups, _, _ := unstructured.NestedSlice(old.Object, "spec", "workerGroupSpecs")
	_ = unstructured.SetNestedField(groups[1].(map[string]any), "old", "template", "spec", "schedulerName")
	_ = unstructured.SetNestedSlice(old.Object, groups, "spec", "workerGroupSpecs")
	if err := w.Ask(t.Context(), old, nil, askedRequest); err != nil {
		t.Fatal(err)
	}
	if err := client.Tracker().Delete(requestKind, "ml", askedRequest.Name); err != nil {
		t.Fatal(err) // and its PodTemplate is left
	}
	for range 2 { // a process that does not see its own write tries again
		if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); err != nil {
			t.Fatal(err)
		}
	}
	object, err := client.Resource(requestKind).Namespace("ml").Get(t.Context(), askedRequest.Name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, _ := readRequest(object)
	pods, err := client.Resource(templates).Namespace("ml").Get(t.Context(), request.Value.Template, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if now, _, _ := unstructured.NestedString(pods.Object, "template", "spec", "schedulerName"); now != "x" {
		t.Errorf("the PodTemplate is for scheduler %s, want that of the group now", now)
	}
	if err := w.Release(t.Context(), "ml", request.Value); err != nil {
		t.Fatal(err)
	}
	if left := schedulers(t, client); len(left) != 1 || left[0] != "old" {
		t.Errorf("PodTemplates for %q are left", left)
	}
}

func TestARequestThatIsRejectedLeavesNothing(t *testing.T) {
	w, client := requestWriter(true)
	if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if left := schedulers(t, client); len(left) > 0 {
		t.Error("the PodTemplate is left")
	}
}

// A request exists that the caches do not show yet, and the right to create one is taken away.
func TestTheTemplateOfARequestThatExistsStays(t *testing.T) {
	w, client := requestWriter(false)
	if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); err != nil {
		t.Fatal(err)
	}
	client.PrependReactor("create", "provisioningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(requestKind.GroupResource(), "heliostat-1", nil)
	})
	_ = w.Ask(t.Context(), requestingCluster(), nil, askedRequest)
	if left := schedulers(t, client); len(left) != 1 {
		t.Errorf("%d PodTemplates, want that of the request", len(left))
	}
}
