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

// requestWriter writes to an API server that has these objects. If rejects is true, it refuses ProvisioningRequests.
func requestWriter(rejects bool, objects ...runtime.Object) (*Provisioning, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{(schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}): "ProvisioningRequestList", templates: "PodTemplateList"},
		objects...)
	client.PrependReactor("create", "provisioningrequests",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			create := action.(clienttesting.CreateActionImpl)
			if rejects {
				return true, nil, apierrors.NewForbidden((schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}).GroupResource(), "heliostat-1", nil)
			}
			if len(create.CreateOptions.DryRun) == 0 {
				return false, nil, nil
			}
			_, err := client.Tracker().Get((schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}), create.Namespace, "heliostat-1")
			if err == nil {
				err = apierrors.NewAlreadyExists((schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}).GroupResource(), "heliostat-1")
			} else if apierrors.IsNotFound(err) {
				err = nil
			}
			return true, create.Object, err
		})
	return NewProvisioning(Config{Client: client, Discovery: anyServed{}}), client
}

var askedRequest = nodepool.ProvisioningRequest{Name: "heliostat-1", Group: "gpu", Pods: 4}

// leftTemplate is what a request that is gone has left, from when the group's template had another node.
func leftTemplate(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	old, err := template(requestingCluster(), nil, askedRequest)
	if err == nil {
		err = unstructured.SetNestedField(old.Object, "old", "template", "spec", "nodeName")
	}
	if err != nil {
		t.Fatal(err)
	}
	return old
}

func nodeOf(t *testing.T, client *dynamicfake.FakeDynamicClient) string {
	t.Helper()
	pods, err := client.Resource(templates).Namespace("ml").Get(t.Context(), askedRequest.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "none"
	} else if err != nil {
		t.Fatal(err)
	}
	node, _, _ := unstructured.NestedString(pods.Object, "template", "spec", "nodeName")
	return node
}

func TestARequestNeverGetsTheTemplateOfAnEarlierOne(t *testing.T) {
	w, client := requestWriter(false, leftTemplate(t))
	if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); err != nil {
		t.Fatal(err)
	}
	if got := nodeOf(t, client); got != "x" {
		t.Errorf("the PodTemplate is for node %s, want that of the group now", got)
	}
	if _, err := client.Tracker().Get((schema.GroupVersionResource{Group: autoscalingGroup, Version: "v1", Resource: requestResource}), "ml", askedRequest.Name); err != nil {
		t.Error(err)
	}
}

func TestTheTemplateOfARequestThatExistsIsNeverMissing(t *testing.T) {
	w, client := requestWriter(false, leftTemplate(t), requestObject(requestingCluster(), "v1", askedRequest))
	if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() == "delete" {
			t.Errorf("%v", action)
		}
	}
}

func TestARequestThatIsRejectedLeavesNothing(t *testing.T) {
	w, client := requestWriter(true)
	if err := w.Ask(t.Context(), requestingCluster(), nil, askedRequest); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if got := nodeOf(t, client); got != "none" {
		t.Error("the PodTemplate is left")
	}
}
