package decode

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"heliostat.dev/heliostat/internal/fieldpath"
)

// ReadPod reads a Pod as the API prints it. It leaves out amounts that are negative or not quantities, of containers
// and of the whole pod, and returns them with field and value. One that is not a quantity would make the whole pod
// undecodable. For any other fault the error names the pod.
func ReadPod(object map[string]any) (pod *corev1.Pod, unreadable []string, err error) {
	pod = &corev1.Pod{}
	err = runtime.DefaultUnstructuredConverter.FromUnstructured(object, pod)
	if err == nil && !slices.ContainsFunc(pod.Spec.InitContainers, takesNegative) &&
		!slices.ContainsFunc(pod.Spec.Containers, takesNegative) && !negative(ofWholePod(pod)...) {
		return pod, nil, nil
	}
	readable := runtime.DeepCopyJSON(object)
	if unreadable = dropUnreadable(readable); len(unreadable) > 0 {
		pod = &corev1.Pod{}
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(readable, pod)
	}
	if err != nil {
		at := unstructured.Unstructured{Object: object}
		err = withField(object, &corev1.Pod{}, err)
		return nil, nil, fmt.Errorf("reading pod %s/%s: %w", at.GetNamespace(), at.GetName(), err)
	}
	return pod, unreadable, nil
}

func takesNegative(c corev1.Container) bool {
	return negative(c.Resources.Requests, c.Resources.Limits)
}

// ofWholePod returns the amounts that a pod takes beside or instead of those of its containers.
func ofWholePod(pod *corev1.Pod) []corev1.ResourceList {
	lists := []corev1.ResourceList{pod.Spec.Overhead}
	if own := pod.Spec.Resources; own != nil {
		lists = append(lists, own.Requests, own.Limits)
	}
	return lists
}

// withField returns an error that names the field of the object whose value has another type than in the struct into
// which it is decoded, or err if JSON does not show which one it is.
func withField(object map[string]any, into any, err error) error {
	text, _ := json.Marshal(object) //nolint:errchkjson // it was read from JSON
	var wrong *json.UnmarshalTypeError
	if !errors.As(json.Unmarshal(text, into), &wrong) {
		return err
	}
	return fmt.Errorf("%s is a %s: want %s", wrong.Field, wrong.Value, fieldpath.WantType(wrong.Type))
}

// dropUnreadable removes from a pod the amounts that are not quantities or are negative, and returns which ones.
func dropUnreadable(object map[string]any) (unreadable []string) {
	spec, _ := object["spec"].(map[string]any)
	for _, list := range []string{"containers", "initContainers"} {
		items, _ := spec[list].([]any)
		for i, item := range items {
			container, _ := item.(map[string]any)
			unreadable = append(unreadable, dropResources(container, fmt.Sprintf("spec.%s[%d].", list, i))...)
		}
	}
	unreadable = append(unreadable, dropResources(spec, "spec.")...)
	return append(unreadable, dropAmounts(spec, "spec.", "overhead")...)
}

// dropResources removes them from the field resources of a container or pod.
func dropResources(of map[string]any, path string) (unreadable []string) {
	resources, _ := of["resources"].(map[string]any)
	for _, section := range []string{"requests", "limits"} {
		unreadable = append(unreadable, dropAmounts(resources, path+"resources.", section)...)
	}
	return unreadable
}

// dropAmounts removes them from a field of an object.
func dropAmounts(of map[string]any, path, field string) (unreadable []string) {
	amounts, _ := of[field].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(amounts)) {
		if isQuantity(amounts[name]) {
			continue
		}
		unreadable = append(unreadable,
			Short(fmt.Sprintf("%s%s[%s] is %#v", path, field, name, amounts[name]))+": want "+wantQuantity)
		delete(amounts, name)
	}
	return unreadable
}
