package kube

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/nodegpu"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// Decode converts one RayCluster and its pods, as a reader of nodes understands names of resources. It never fails: what cannot be read is a finding of
// this cluster.
func Decode(reader nodegpu.Reader, rayCluster *unstructured.Unstructured, pods []*corev1.Pod) nodepool.Cluster {
	return join(decodeBy(reader, rayCluster), pods)
}

// DecodeCluster converts a manifest, YAML or JSON, without pods. The error says that it is no RayCluster at all.
func DecodeCluster(reader nodegpu.Reader, manifest []byte) (nodepool.Cluster, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(manifest, &object); err != nil {
		return nodepool.Cluster{}, fmt.Errorf("reading RayCluster: %w", err)
	}
	if kind := object["kind"]; kind != nil && kind != "RayCluster" {
		return nodepool.Cluster{}, fmt.Errorf("reading RayCluster: kind is %v", kind)
	}
	if _, ok := object["spec"].(map[string]any); !ok {
		return nodepool.Cluster{}, fmt.Errorf("reading RayCluster: spec is missing")
	}
	return Decode(reader, &unstructured.Unstructured{Object: object}, nil), nil
}

// decoded is what a RayCluster object says by itself. It is kept as long as the object does not change, and never
// modified: join works on a copy.
type decoded struct {
	cluster  nodepool.Cluster
	lineage  lineage
	object   map[string]any
	findings []raydemand.Finding
}

func decodeObject(rayCluster *unstructured.Unstructured) decoded {
	return decodeBy(nodegpu.Reader{}, rayCluster)
}

// decodeBy knows the resources that the reader knows.
func decodeBy(reader nodegpu.Reader, rayCluster *unstructured.Unstructured) decoded {
	key := nodepool.ClusterKey{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName()}
	report := &findings{object: "RayCluster " + key.String()}
	root := fields{values: rayCluster.Object, report: report}
	metadata, spec, status := root.object("metadata"), root.object("spec"), root.object("status")
	options := spec.object("autoscalerOptions")
	cluster := nodepool.Cluster{
		Key: key, UID: metadata.text("uid"), ResourceVersion: metadata.text("resourceVersion"),
		Generation: metadata.int64("generation"), ObservedGeneration: status.int64("observedGeneration"),
		Suspended:         spec.flag("suspend"),
		Deleting:          metadata.has("deletionTimestamp"),
		ManagedElsewhere:  spec.has("managedBy") && spec.text("managedBy") != "ray.io/kuberay-operator",
		Owner:             ownerOf(metadata),
		Queue:             queueOf(metadata, spec),
		ScaledBy:          scaledBy(metadata),
		RayVersion:        spec.text("rayVersion"),
		UpgradeStrategy:   spec.object("upgradeStrategy").text("type"),
		InTreeAutoscaling: spec.flag("enableInTreeAutoscaling"),
		IdleTimeout:       idleTimeout(options),
		UpscalingMode:     options.text("upscalingMode"),
	}
	readAnnotations(metadata, &cluster)
	ownCommand := strings.EqualFold(metadata.texts("annotations")[overwriteAnnotation], "true")
	cluster.Groups = decodeGroups(reader, spec, ownCommand)
	priceGroups(metadata, &cluster)
	syncGroups(metadata, &cluster)
	if accepted := cluster.Generation > 0 && cluster.ObservedGeneration >= cluster.Generation; !accepted {
		cluster.Refused = reportRefusals(spec, cluster.Groups, cluster.InTreeAutoscaling)
	}
	cluster.Unreadable = report.unreadable
	return decoded{cluster: cluster, lineage: lineageOf(metadata, spec), object: rayCluster.Object, findings: report.list}
}

// join adds the pods to a decoded object.
func join(d decoded, pods []*corev1.Pod) nodepool.Cluster {
	cluster := d.cluster
	cluster.Groups = slices.Clone(cluster.Groups)
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		group.Resources, group.Labels = maps.Clone(group.Resources), maps.Clone(group.Labels)
		group.WorkersToDelete = slices.Clone(group.WorkersToDelete)
	}
	report := &findings{object: "RayCluster " + cluster.Key.String()}
	root := fields{values: d.object, report: report}
	head := headOf(pods)
	cluster.Head = describeHead(root, cluster.Key.Name, cluster.Key.Namespace, head)
	cluster.Auth = describeAuth(root.object("spec"), cluster.Key.Name, head)
	cluster.Workers = workers(pods)
	reportPods(report, &cluster)
	reportReplicaFailure(root.object("status"), &cluster)
	cluster.Unreadable = cluster.Unreadable || report.unreadable
	cluster.Findings = bounded(distinct(slices.Concat(d.findings, report.list)))
	return cluster
}

// ownerOf names the RayJob or RayService that controls the RayCluster.
func ownerOf(metadata fields) nodepool.Owner {
	for _, reference := range metadata.objects("ownerReferences") {
		if kind := reference.text("kind"); kind == "RayJob" || kind == "RayService" {
			return nodepool.Owner{Kind: kind, Name: reference.text("name")}
		}
	}
	return nodepool.Owner{}
}

// distinct drops repeated findings: a field that is read twice is reported once.
func distinct(list []raydemand.Finding) []raydemand.Finding {
	seen := make(map[raydemand.Finding]bool, len(list))
	return slices.DeleteFunc(list, func(f raydemand.Finding) bool {
		again := seen[f]
		seen[f] = true
		return again
	})
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
