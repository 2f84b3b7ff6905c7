package rig

import (
	"cmp"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// RayClusters is the resource that KubeRay's custom resource definition declares.
var RayClusters = schema.GroupVersionResource{Group: "ray.io", Version: "v1", Resource: "rayclusters"}

// RayVersion is the default version of Ray in the dev cluster's pods.
const RayVersion = "2.60.0"

// images is the repository of the images that run Ray. The tag is the version.
const images = "rayproject/ray:"

// Image is the image of pods that run RayVersion.
const Image = images + RayVersion

// Group describes a worker group of a RayCluster. A zero value means KubeRay's default.
type Group struct {
	Name               string
	Replicas, Min, Max int64
	Hosts              int64
	// Image is the image of the group's pods. The default is that of the cluster's version of Ray.
	Image string
	// CPU is the container's CPU limit, by default "1". Devices are additional limits, such as nvidia.com/gpu.
	CPU     string
	Devices map[string]int64
	// Labels are Ray node labels, not Kubernetes labels. NodeSelector selects Kubernetes nodes.
	Labels, NodeSelector map[string]string
	Params               map[string]string
	// Variables is the name of a ConfigMap whose entries are variables of the group's containers.
	Variables string
	// Env are further variables of the group's containers, and Affinity is its pods', both as Kubernetes writes them.
	Env      []any
	Affinity map[string]any
	// IdleSeconds is the group's own idle timeout. The operator accepts it only with autoscaler v2.
	IdleSeconds int64
}

// Cluster describes a RayCluster.
type Cluster struct {
	Namespace, Name string
	Annotations     map[string]string
	// Ray is the version of Ray in all pods that set no image. The default is the constant RayVersion.
	Ray string
	// HeadNodes selects the Kubernetes node of the head.
	HeadNodes map[string]string
	// Priority is the name of the PriorityClass of all pods.
	Priority string
	// NoTolerations leaves out that the pods tolerate every taint. Karpenter does not evict pods that tolerate its
	// taint (pkg/utils/pod/scheduling.go: IsDrainable).
	NoTolerations bool
	// IdleSeconds is the idle timeout of groups that do not set their own.
	IdleSeconds int64
	// InTree adds an autoscaler sidecar that runs SidecarImage, by default Ray's own.
	InTree       bool
	SidecarImage string
	Groups       []Group
}

// Manifest returns the RayCluster as Kubernetes stores it. The head has no CPUs, so all work needs a worker.
func (c Cluster) Manifest() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ray.io/v1",
		"kind":       "RayCluster",
		"metadata":   map[string]any{"namespace": c.Namespace, "name": c.Name, "annotations": anyMap(c.Annotations)},
		"spec":       c.Spec(),
	}}
}

// Spec returns only the spec, which a RayJob and a RayService also contain.
func (c Cluster) Spec() map[string]any {
	version := cmp.Or(c.Ray, RayVersion)
	image := images + version
	groups := make([]any, len(c.Groups))
	for i, g := range c.Groups {
		g.Image = cmp.Or(g.Image, image)
		groups[i] = g.spec(c.NoTolerations, c.Priority)
	}
	options := map[string]any{}
	if c.IdleSeconds > 0 {
		options["idleTimeoutSeconds"] = c.IdleSeconds
	}
	if c.InTree {
		options["version"] = "v2"
	}
	if c.SidecarImage != "" {
		options["image"] = c.SidecarImage
	}
	return map[string]any{
		"rayVersion":              version,
		"enableInTreeAutoscaling": c.InTree,
		"autoscalerOptions":       options,
		"headGroupSpec": map[string]any{
			"rayStartParams": map[string]any{"num-cpus": "0"},
			"template": template(
				podShape{name: "ray-head", image: image, cpu: "1", nodes: c.HeadNodes, strict: c.NoTolerations,
					priority: c.Priority},
			),
		},
		"workerGroupSpecs": groups,
	}
}

func (g Group) spec(strict bool, priority string) map[string]any {
	spec := map[string]any{
		"groupName":      g.Name,
		"replicas":       g.Replicas,
		"minReplicas":    g.Min,
		"maxReplicas":    g.Max,
		"numOfHosts":     max(g.Hosts, 1),
		"rayStartParams": anyMap(g.Params),
		"template": template(podShape{name: "ray-worker", image: g.Image, cpu: cmp.Or(g.CPU, "1"),
			devices: g.Devices, nodes: g.NodeSelector, strict: strict, priority: priority}),
	}
	pod := spec["template"].(map[string]any)["spec"].(map[string]any)
	container := pod["containers"].([]any)[0].(map[string]any)
	if g.Variables != "" {
		container["envFrom"] = []any{map[string]any{"configMapRef": map[string]any{"name": g.Variables}}}
	}
	if g.Env != nil {
		container["env"] = g.Env
	}
	if g.Affinity != nil {
		pod["affinity"] = g.Affinity
	}
	if len(g.Labels) > 0 {
		spec["labels"] = anyMap(g.Labels)
	}
	if g.IdleSeconds > 0 {
		spec["idleTimeoutSeconds"] = g.IdleSeconds
	}
	return spec
}

// podShape is what differs between pod templates. A strict pod tolerates no taint.
type podShape struct {
	name, image, cpu string
	devices          map[string]int64
	nodes            map[string]string
	strict           bool
	priority         string
}

// template returns a pod template with one Ray container.
func template(p podShape) map[string]any {
	limits := map[string]any{"cpu": p.cpu, "memory": "1Gi"}
	requests := map[string]any{"cpu": "100m", "memory": "256Mi"}
	for device, n := range p.devices {
		limits[device] = strconv.FormatInt(n, 10)
		requests[device] = limits[device]
	}
	container := map[string]any{
		"name":      p.name,
		"image":     p.image,
		"resources": map[string]any{"limits": limits, "requests": requests},
	}
	if p.image == SleeperImage {
		// KubeRay's own probes ask Ray. The dev cluster lets few Ray nodes start at once, until each is ready.
		yes := map[string]any{"exec": map[string]any{"command": []any{"true"}}}
		container["readinessProbe"], container["livenessProbe"] = yes, yes
	}
	pod := map[string]any{
		"containers":                    []any{container},
		"terminationGracePeriodSeconds": int64(10),
	}
	if !p.strict {
		pod["tolerations"] = []any{map[string]any{"operator": "Exists"}}
	}
	if p.priority != "" {
		pod["priorityClassName"] = p.priority
	}
	if len(p.nodes) > 0 {
		pod["nodeSelector"] = anyMap(p.nodes)
	}
	return map[string]any{"spec": pod}
}

func anyMap(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		out[key] = value
	}
	return out
}
