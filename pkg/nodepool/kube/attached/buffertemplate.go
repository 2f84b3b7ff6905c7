package attached

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// What a node autoscaler looks at in a pod. Commands, environments and mounts are left out: they may contain what not
// everybody may read who may read PodTemplates, and a change of them needs no other node. So are scheduling gates,
// behind which a pod has no node at all, and the name of a node.
var (
	podFields = []string{
		"affinity", "enableServiceLinks", "hostNetwork", "nodeSelector", "os", "overhead", "preemptionPolicy",
		"priorityClassName", "resourceClaims", "resources", "runtimeClassName", "schedulerName", "tolerations",
		"topologySpreadConstraints",
	}
	containerFields = []string{"image", "name", "resources", "restartPolicy"}
	// volumeFields are the kinds of volumes that bind a pod to a zone or a driver.
	volumeFields = []string{"csi", "ephemeral", "persistentVolumeClaim"}
)

// groupTemplate returns the template of a group's pods, as far as it says which node they need; nil if there is no such
// group. labels are those of its pods.
func groupTemplate(
	rayCluster *unstructured.Unstructured, group string, labels map[string]string,
) (map[string]any, error) {
	template, err := wholeTemplate(rayCluster, group, labels)
	spec, _ := template["spec"].(map[string]any)
	if err != nil || spec == nil {
		return nil, err
	}
	metadata := map[string]any{}
	if from, _ := template["metadata"].(map[string]any); from != nil {
		copyFields(metadata, from, "annotations", "labels")
	}
	return map[string]any{"metadata": metadata, "spec": podSpec(spec)}, nil
}

func podSpec(from map[string]any) map[string]any {
	spec := map[string]any{}
	copyFields(spec, from, podFields...)
	for _, list := range []string{"containers", "initContainers"} {
		if containers := eachOf(from[list], container); containers != nil {
			spec[list] = containers
		}
	}
	if volumes := eachOf(from["volumes"], volume); volumes != nil {
		spec["volumes"] = volumes
	}
	return spec
}

// container keeps the resources, and the ports that a node has only once.
func container(from map[string]any) map[string]any {
	kept := map[string]any{}
	copyFields(kept, from, containerFields...)
	ports := eachOf(from["ports"], func(port map[string]any) map[string]any {
		if number, _ := port["hostPort"].(int64); number == 0 {
			return nil
		}
		return port
	})
	if ports != nil {
		kept["ports"] = ports
	}
	return kept
}

func volume(from map[string]any) map[string]any {
	kept := map[string]any{}
	copyFields(kept, from, volumeFields...)
	if len(kept) == 0 {
		return nil
	}
	copyFields(kept, from, "name")
	return kept
}

// eachOf keeps what keep makes of the objects of a list, without nil; nil if nothing is left.
func eachOf(list any, keep func(map[string]any) map[string]any) []any {
	var kept []any
	items, _ := list.([]any)
	for _, item := range items {
		if object, _ := item.(map[string]any); object != nil {
			if made := keep(object); made != nil {
				kept = append(kept, made)
			}
		}
	}
	return kept
}

func copyFields(to, from map[string]any, names ...string) {
	for _, name := range names {
		if value, has := from[name]; has {
			to[name] = value
		}
	}
}

// podTemplate returns the PodTemplate of a buffer.
func podTemplate(
	rayCluster *unstructured.Unstructured, b nodepool.Buffer, template map[string]any,
) *unstructured.Unstructured {
	return owned(rayCluster, b, map[string]any{"apiVersion": "v1", "kind": "PodTemplate", "template": template})
}
