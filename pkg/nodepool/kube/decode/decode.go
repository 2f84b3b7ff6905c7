// Package decode is the one decoder of Kubernetes objects, for the manager, the doctor and files.
//
// It turns a RayCluster object and its pods into a nodepool.Cluster: it knows what the fields, the annotations and the
// pod templates mean to KubeRay, to Ray and to Kueue, and what Ray reports for each worker group. It also reads the
// objects that say what nodes are and how many there can be: Nodes, Pods, ResourceSlices and ResourceClaims,
// Karpenter's NodePools and NodeClaims, the Cluster Autoscaler's status, and the pools file, and converts them into the
// types of sharing and landing. What is wrong with an object becomes findings in a Report, which keeps them short.
//
// Decoding never fails. RayClusters are read as unstructured objects, field by field, because the API server stores
// objects that typed clients cannot decode: replicas 2147483648 passes the CRD, whose int32 format is not enforced. One
// such object in a typed list blinds the reader for all namespaces (docs/reference/facts.md#undecodable-object).
// Here it is a finding of its own cluster.
//
// The package must not call the API server, watch anything, or decide anything: equal objects give equal clusters.
package decode

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// SpecPaths are the kinds that have the spec of a RayCluster, and its path.
var SpecPaths = map[string][]string{
	"RayCluster": {"spec"},
	"RayJob":     {"spec", "rayClusterSpec"},
	"RayService": {"spec", "rayClusterConfig"},
	"RayCronJob": {"spec", "jobTemplate", "rayClusterSpec"},
}

// AsCluster returns the RayCluster that a RayJob, RayService or RayCronJob would create from the spec in it.
func AsCluster(object, spec map[string]any) map[string]any {
	if object["kind"] == "RayCluster" || object["kind"] == nil {
		return object
	}
	return map[string]any{
		"apiVersion": object["apiVersion"], "kind": "RayCluster", "metadata": object["metadata"], "spec": spec,
	}
}

// ReadManifest reads a RayCluster from a manifest, YAML or JSON: of itself, of another object that has its spec, or of
// a list of one of them. It returns an error for anything else.
func ReadManifest(manifest []byte) (*unstructured.Unstructured, error) {
	object := map[string]any{}
	if err := yaml.Unmarshal(manifest, &object); err != nil {
		return nil, fmt.Errorf("reading RayCluster: %w", err)
	}
	if items, isList := object["items"].([]any); isList && len(items) == 1 {
		object, _ = items[0].(map[string]any)
	}
	kind, _ := object["kind"].(string)
	path := SpecPaths[cmp.Or(kind, "RayCluster")]
	if path == nil {
		return nil, fmt.Errorf("reading RayCluster: kind is %s", fieldpath.Shown(object["kind"]))
	}
	spec, found, _ := unstructured.NestedMap(object, path...)
	if !found {
		return nil, fmt.Errorf("reading RayCluster: %s is missing", strings.Join(path, "."))
	}
	for _, key := range []string{"name", "namespace"} {
		value := fieldpath.Of(object, nil).Get("metadata", key)
		if _, isText := value.Raw().(string); value.Has() && !isText {
			return nil, fmt.Errorf("metadata.%s is %s: want a string", key, value)
		}
	}
	return &unstructured.Unstructured{Object: AsCluster(object, spec)}, nil
}

// Decoded is what a RayCluster object says without its pods. It never changes, so callers can keep it as long as the
// object stays the same: Join works on a copy.
type Decoded struct {
	Cluster   nodepool.Cluster
	Ownership Ownership
	Findings  []raydemand.Finding

	// rest is what Join reads of the object: its status and its spec without the templates of pods.
	rest map[string]any
	// head is the template of the head.
	head *landing.PodShape
	// limitedSince is when the LimitRanges that refuse the pods of a group were last changed.
	limitedSince map[string]time.Time
}

// DecodeObject is Decode without configured names of resources.
func DecodeObject(rayCluster *unstructured.Unstructured) Decoded {
	return Decode(sharing.Reader{}, rayCluster)
}

// Decode converts a RayCluster object. The reader knows the names of resources.
func Decode(reader sharing.Reader, rayCluster *unstructured.Unstructured) Decoded {
	key := nodepool.ClusterKey{Namespace: rayCluster.GetNamespace(), Name: rayCluster.GetName()}
	report := &Report{Object: "RayCluster " + key.String()}
	root := FieldsOf(rayCluster.Object, report)
	metadata, spec, status := root.Object("metadata"), root.Object("spec"), root.Object("status")
	options := spec.Object("autoscalerOptions")
	cluster := nodepool.Cluster{
		Key: key, UID: metadata.Text("uid"), CreatedAt: rayCluster.GetCreationTimestamp().Time,
		ResourceVersion: metadata.Text("resourceVersion"),
		Generation:      metadata.Int64("generation"), ObservedGeneration: status.Int64("observedGeneration"),
		Suspended:         spec.Flag("suspend") || spec.Flag("idleSuspend"), // kuberay #5210
		Deleting:          metadata.Has("deletionTimestamp"),
		ManagedElsewhere:  spec.Has("managedBy") && spec.Text("managedBy") != "ray.io/kuberay-operator",
		Owner:             ownerOf(metadata),
		Queue:             queueOf(metadata, spec),
		ScaledBy:          scaledBy(metadata),
		RayVersion:        spec.Text("rayVersion"),
		UpgradeStrategy:   spec.Object("upgradeStrategy").Text("type"),
		InTreeAutoscaling: spec.Flag("enableInTreeAutoscaling"),
		IdleTimeout:       idleTimeout(options),
		UpscalingMode:     options.Text("upscalingMode"),
	}
	if owners := metadata.Objects("ownerReferences"); len(owners) > 0 {
		cluster.OwnedBy = owners[0].Text("kind") + " " + owners[0].Text("name")
	}
	readAnnotations(metadata, &cluster)
	headPod := podOf(spec.Object("headGroupSpec").Object("template"))
	for _, ofTexts := range []string{"rayStartParams", "resources", "labels"} {
		spec.Object("headGroupSpec").Texts(ofTexts) // other values are findings
	}
	checkContainers(spec.Object("headGroupSpec"), headPod)
	injected := []string{}
	if cluster.InTreeAutoscaling {
		injected = append(injected, autoscalerContainer)
	}
	checkPodRules(spec.Object("headGroupSpec"), injected...)
	cluster.Groups = decodeGroups(reader, spec, key, overwritesCommand(root))
	checkImages(spec, cluster.Groups)
	priceGroups(metadata, &cluster)
	annotateGroups(metadata, cluster.Groups)
	cluster.Unreadable = report.Unreadable
	head := podShape(headPod)
	addInto(head.Requests, collectorRequests(spec))
	return Decoded{
		Cluster:   cluster,
		Ownership: ownershipOf(metadata, spec),
		Findings:  report.All,
		rest:      map[string]any{"spec": withoutTemplates(spec), "status": rayCluster.Object["status"]},
		head:      &head,
	}
}

// withoutTemplates returns a spec without its groups, and of the head's with rayStartParams alone.
func withoutTemplates(spec Fields) map[string]any {
	rest, _ := spec.Raw().(map[string]any)
	rest = maps.Clone(rest)
	delete(rest, "workerGroupSpecs")
	if head, known := rest["headGroupSpec"].(map[string]any); known {
		rest["headGroupSpec"] = map[string]any{"rayStartParams": head["rayStartParams"]}
	}
	return rest
}

// Join returns a cluster with its pods.
func Join(d Decoded, pods []*Pod) nodepool.Cluster {
	cluster := d.Cluster
	cluster.Groups = slices.Clone(cluster.Groups)
	for i := range cluster.Groups {
		group := &cluster.Groups[i]
		group.Resources, group.Labels = maps.Clone(group.Resources), maps.Clone(group.Labels)
		group.WorkersToDelete = slices.Clone(group.WorkersToDelete)
	}
	report := &Report{Object: "RayCluster " + cluster.Key.String()}
	root := FieldsOf(d.rest, report)
	head := headOf(pods)
	cluster.Head = describeHead(root, d.head, cluster.Key, head)
	cluster.Auth = describeAuth(root.Object("spec"), cluster.Key.Name, head)
	cluster.Workers = workers(pods)
	reportIdleTermination(root.Object("spec"), &cluster)
	cluster.MarkGivenBack()
	reportPods(report, &cluster)
	reportReplicaFailure(root.Object("status"))
	cluster.Unreadable = cluster.Unreadable || report.Unreadable
	findings := slices.Concat(d.Findings, report.All)
	disprove(&cluster, findings, d.limitedSince)
	cluster.Findings = limited(findings)
	return cluster
}

// disprove takes back that the API server refuses the pods of a group of which one runs: an admission webhook or a
// newer Kubernetes may complete a template. A pod that is older than the last change of a LimitRange
// that refuses the group's pods proves nothing.
func disprove(cluster *nodepool.Cluster, findings []raydemand.Finding, limitedSince map[string]time.Time) {
	runs := map[string]bool{}
	for i := range cluster.Workers {
		w := &cluster.Workers[i]
		since := limitedSince[w.Group]
		proves := w.Running && !w.Failed && (since.IsZero() || w.CreatedAt.After(since))
		runs[w.Group] = runs[w.Group] || proves
	}
	for i := range cluster.Groups {
		g := &cluster.Groups[i]
		if !g.Broken || !runs[g.Name] {
			continue
		}
		at, refused, others := fmt.Sprintf("spec.workerGroupSpecs[%d].", g.Index), []int{}, false
		for k, f := range findings {
			if f.Severity == raydemand.Error && strings.HasPrefix(f.Field, at) {
				refused, others = append(refused, k), others || f.Code != PodsRefused
			}
		}
		if len(refused) == 0 || others {
			continue
		}
		g.Broken = false
		for _, k := range refused {
			findings[k].Severity = raydemand.Warning
		}
	}
}

// ownerOf returns the RayJob or RayService that controls the RayCluster.
func ownerOf(metadata Fields) nodepool.Owner {
	for _, reference := range metadata.Objects("ownerReferences") {
		if kind := reference.Text("kind"); kind == "RayJob" || kind == "RayService" {
			return nodepool.Owner{Kind: kind, Name: reference.Text("name"), UID: reference.Text("uid")}
		}
	}
	return nodepool.Owner{}
}
