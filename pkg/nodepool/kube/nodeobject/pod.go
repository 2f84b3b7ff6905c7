package nodeobject

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/pkg/nodepool/kube/finding"
)

// ReadPod reads a Pod as the API prints it. It leaves out amounts of containers that are not quantities, any of which
// would make the whole pod undecodable, and returns them with field and value. For any other fault the error names the
// pod.
func ReadPod(object map[string]any) (pod *corev1.Pod, unreadable []string, err error) {
	pod = &corev1.Pod{}
	if err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, pod); err == nil {
		return pod, nil, nil
	}
	readable := runtime.DeepCopyJSON(object)
	if unreadable = dropUnreadable(readable); len(unreadable) > 0 {
		pod = &corev1.Pod{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(readable, pod)
	}
	if err != nil {
		at := unstructured.Unstructured{Object: object}
		return nil, nil, fmt.Errorf("reading pod %s/%s: %w", at.GetNamespace(), at.GetName(), withField(object, err))
	}
	return pod, unreadable, nil
}

// withField returns an error that names the field whose value has another type than a Pod's, or err if JSON does not
// show which one it is.
func withField(object map[string]any, err error) error {
	text, _ := json.Marshal(object) //nolint:errchkjson // it was read from JSON
	var wrong *json.UnmarshalTypeError
	if !errors.As(json.Unmarshal(text, &corev1.Pod{}), &wrong) {
		return err
	}
	return fmt.Errorf("%s is a %s: want %s", wrong.Field, wrong.Value, wanted(wrong.Type))
}

// dropUnreadable removes from a pod the amounts that are not quantities, and returns which ones.
func dropUnreadable(object map[string]any) (unreadable []string) {
	for _, list := range []string{"containers", "initContainers"} {
		containers, _, _ := unstructured.NestedFieldNoCopy(object, "spec", list)
		items, _ := containers.([]any)
		for i, item := range items {
			container, _ := item.(map[string]any)
			for _, section := range []string{"requests", "limits"} {
				found, _, _ := unstructured.NestedFieldNoCopy(container, "resources", section)
				amounts, _ := found.(map[string]any)
				for _, name := range slices.Sorted(maps.Keys(amounts)) {
					if isQuantity(amounts[name]) {
						continue
					}
					unreadable = append(
						unreadable,
						finding.Short(
							fmt.Sprintf("spec.%s[%d].resources.%s[%s] is %#v", list, i, section, name, amounts[name]),
						)+": want a Kubernetes quantity",
					)
					delete(amounts, name)
				}
			}
		}
	}
	return unreadable
}
