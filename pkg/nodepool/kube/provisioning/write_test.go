package provisioning

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
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
)

// served serves v1.
type served struct {
	discovery.ServerResourcesInterface
}

func (served) ServerResourcesForGroupVersion(string) (*metav1.APIResourceList, error) {
	return &metav1.APIResourceList{}, nil
}

// writer writes to an API server that has these objects. If rejects is true, it refuses ProvisioningRequests.
func writer(rejects bool, objects ...runtime.Object) (*Watch, *dynamicfake.FakeDynamicClient) {
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(),
		map[schema.GroupVersionResource]string{resource("v1"): "ProvisioningRequestList", templates: "PodTemplateList"},
		objects...)
	client.PrependReactor("create", "provisioningrequests",
		func(action clienttesting.Action) (bool, runtime.Object, error) {
			create := action.(clienttesting.CreateActionImpl)
			if rejects {
				return true, nil, apierrors.NewForbidden(resource("v1").GroupResource(), "heliostat-1", nil)
			}
			if len(create.CreateOptions.DryRun) == 0 {
				return false, nil, nil
			}
			_, err := client.Tracker().Get(resource("v1"), create.Namespace, "heliostat-1")
			if err == nil {
				err = apierrors.NewAlreadyExists(resource("v1").GroupResource(), "heliostat-1")
			} else if apierrors.IsNotFound(err) {
				err = nil
			}
			return true, create.Object, err
		})
	return NewWatch(attached.Config{Client: client, Discovery: served{}}), client
}

var asked = nodepool.ProvisioningRequest{Name: "heliostat-1", Group: "gpu", Pods: 4}

// leftTemplate is what a request that is gone has left, from when the group's template had another node.
func leftTemplate(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	old, err := template(rayCluster(), nil, asked)
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
	pods, err := client.Resource(templates).Namespace("ml").Get(t.Context(), asked.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return "none"
	} else if err != nil {
		t.Fatal(err)
	}
	node, _, _ := unstructured.NestedString(pods.Object, "template", "spec", "nodeName")
	return node
}

func TestARequestNeverGetsTheTemplateOfAnEarlierOne(t *testing.T) {
	w, client := writer(false, leftTemplate(t))
	if err := w.Ask(t.Context(), rayCluster(), nil, asked); err != nil {
		t.Fatal(err)
	}
	if got := nodeOf(t, client); got != "x" {
		t.Errorf("the PodTemplate is for node %s, want that of the group now", got)
	}
	if _, err := client.Tracker().Get(resource("v1"), "ml", asked.Name); err != nil {
		t.Error(err)
	}
}

func TestTheTemplateOfARequestThatExistsIsNeverMissing(t *testing.T) {
	w, client := writer(false, leftTemplate(t), object(rayCluster(), "v1", asked))
	if err := w.Ask(t.Context(), rayCluster(), nil, asked); err != nil {
		t.Fatal(err)
	}
	for _, action := range client.Actions() {
		if action.GetVerb() == "delete" {
			t.Errorf("%v", action)
		}
	}
}

func TestARequestThatIsRejectedLeavesNothing(t *testing.T) {
	w, client := writer(true)
	if err := w.Ask(t.Context(), rayCluster(), nil, asked); !apierrors.IsForbidden(err) {
		t.Errorf("error %v", err)
	}
	if got := nodeOf(t, client); got != "none" {
		t.Error("the PodTemplate is left")
	}
}
