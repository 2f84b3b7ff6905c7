package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// NodePool is the part of a Karpenter NodePool (karpenter.sh/v1) that Heliostat reads.
type NodePool struct {
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Replicas *int64         `json:"replicas"`
		Limits   map[string]any `json:"limits"`
		Template struct {
			Metadata struct {
				Labels map[string]string `json:"labels"`
			} `json:"metadata"`
			Spec struct {
				Requirements []landing.Requirement `json:"requirements"`
				Taints       []corev1.Taint        `json:"taints"`
			} `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

// Template describes every node that Karpenter adds to the pool. It ignores startupTaints, which disappear once a node
// has started.
func (p NodePool) Template() *landing.NodeTemplate {
	own := p.Spec.Template
	made := &corev1.Node{Spec: corev1.NodeSpec{Taints: own.Spec.Taints}}
	return &landing.NodeTemplate{Labels: own.Metadata.Labels, Requirements: own.Spec.Requirements, Taints: Taints(made)}
}

// CeilingOf reads spec.replicas, the size of a static NodePool, and spec.limits: the totals of all nodes of the pool,
// and under the name nodes their number. Without limits the pool has no ceiling.
func CeilingOf(pool NodePool) (ceiling landing.Ceiling, err error) {
	ceiling = landing.Ceiling{Group: pool.Metadata.Name, Limits: landing.Quantities{}, Source: landing.FromKarpenter}
	for _, name := range slices.Sorted(maps.Keys(pool.Spec.Limits)) {
		quantity, err := resource.ParseQuantity(fmt.Sprint(pool.Spec.Limits[name]))
		if err != nil {
			return ceiling, fmt.Errorf("reading NodePool %s: spec.limits.%s %v: %w", pool.Metadata.Name, name,
				pool.Spec.Limits[name], err)
		}
		if name == "nodes" {
			most := quantity.Value()
			ceiling.MaxNodes = &most
			continue
		}
		ceiling.Limits[name] = Amount(quantity)
	}
	if static := pool.Spec.Replicas; static != nil {
		ceiling.MinNodes, ceiling.MaxNodes, ceiling.Replicas = static, static, static
	}
	return ceiling, nil
}

// The label of a NodeClaim that names its pool, and the conditions that show its progress.
const (
	nodePoolLabel    = "karpenter.sh/nodepool"
	claimLaunched    = "Launched"
	claimRegistered  = "Registered"
	claimInitialized = "Initialized"
)

// readyNode are the reasons of an Initialized condition that is not met although the node is ready
// (sigs.k8s.io/karpenter v1.14.1, pkg/controllers/nodeclaim/lifecycle/initialization.go).
var readyNode = map[string]bool{
	"StartupTaintsExist":         true,
	"KnownEphemeralTaintsExist":  true,
	"ResourceNotRegistered":      true,
	"DRADriverPoolsNotPublished": true,
}

// claimObject is the part of a NodeClaim (karpenter.sh/v1) that Heliostat reads.
type claimObject struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		Requirements []landing.Requirement `json:"requirements"`
		Taints       []corev1.Taint        `json:"taints"`
		Resources    struct {
			Requests corev1.ResourceList `json:"requests"`
		} `json:"resources"`
	} `json:"spec"`
	Status struct {
		NodeName    string              `json:"nodeName"`
		Allocatable corev1.ResourceList `json:"allocatable"`
		Conditions  []metav1.Condition  `json:"conditions"`
	} `json:"status"`
}

// ReadNodeClaim converts a NodeClaim as the API server writes it.
func ReadNodeClaim(object *unstructured.Unstructured) (landing.NodeClaim, error) {
	var read claimObject
	text, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return landing.NodeClaim{}, fmt.Errorf("reading NodeClaim %s: %w", object.GetName(), err)
	}
	return read.claim(), nil
}

func (c *claimObject) claim() landing.NodeClaim {
	claim := landing.NodeClaim{
		Name: c.Metadata.Name, Pool: c.Metadata.Labels[nodePoolLabel], Node: c.Status.NodeName,
		Deleting: c.Metadata.DeletionTimestamp != nil, CreatedAt: c.Metadata.CreationTimestamp.Time,
		Requests: quantitiesOf(c.Spec.Resources.Requests),
		Template: landing.NodeTemplate{
			Labels: maps.Clone(c.Metadata.Labels), Requirements: c.Spec.Requirements,
			Taints: Taints(&corev1.Node{Spec: corev1.NodeSpec{Taints: c.Spec.Taints}}),
		},
	}
	for _, condition := range c.Status.Conditions {
		met := condition.Status == metav1.ConditionTrue
		switch condition.Type {
		case claimLaunched:
			if claim.Launched = met; met {
				claim.LaunchedAt = condition.LastTransitionTime.Time
			}
		case claimRegistered:
			if claim.Registered = met; met {
				claim.RegisteredAt = condition.LastTransitionTime.Time
			}
		case claimInitialized:
			claim.Initialized = met
			if claim.NodeReady = met || readyNode[condition.Reason]; !met && claim.NodeReady {
				claim.Lacks = condition.Message
			}
		}
	}
	if claim.Launched && len(c.Status.Allocatable) > 0 {
		claim.Allocatable = quantitiesOf(c.Status.Allocatable)
	}
	return claim.Classed()
}

func quantitiesOf(list corev1.ResourceList) landing.Quantities {
	amounts := make(landing.Quantities, len(list))
	for name, quantity := range list {
		amounts[string(name)] = Amount(quantity)
	}
	return amounts
}

// StatusConfigMap is where the Cluster Autoscaler writes its status, in its own namespace, usually kube-system.
const StatusConfigMap = "cluster-autoscaler-status"

// The text that the Cluster Autoscaler wrote before release 1.30: a node group's name, and the sizes on the line of its
// health (kubernetes/autoscaler, clusterstate/utils).
var (
	statusName  = regexp.MustCompile(`^\s*Name:\s+(\S+)\s*$`)
	statusSizes = regexp.MustCompile(`\bHealth:.*\(minSize=(\d+), maxSize=(\d+)\)`)
)

// statusYAML is the form since release 1.30.
type statusYAML struct {
	NodeGroups []struct {
		Name   string `json:"name"`
		Health struct {
			MinSize *int64 `json:"minSize"`
			MaxSize *int64 `json:"maxSize"`
		} `json:"health"`
	} `json:"nodeGroups"`
}

// AutoscalerCeilings reads the sizes of node groups from the Cluster Autoscaler's status, in either form. It returns an
// error for any other text.
func AutoscalerCeilings(status string) ([]landing.Ceiling, error) {
	if statusHead.MatchString(status) {
		return textCeilings(status), nil
	}
	var form statusYAML
	if err := yaml.Unmarshal([]byte(status), &form); err != nil {
		return nil, fmt.Errorf(
			"reading the Cluster Autoscaler's status, which is neither YAML nor the text of releases before 1.30: %w",
			err,
		)
	}
	var ceilings []landing.Ceiling
	for _, group := range form.NodeGroups {
		ceilings = append(ceilings, ceilingOf(group.Name, group.Health.MinSize, group.Health.MaxSize))
	}
	return ceilings, nil
}

// statusHead is the beginning of the old form.
var statusHead = regexp.MustCompile(`^Cluster-autoscaler status at |(?m)^Cluster-wide:`)

// statusUpdated is the annotation in which both forms of the status state when they were written, in the layout
// statusFormat (docs/reference/facts.md#status-of-the-cluster-autoscaler). Both texts contain the time too.
const (
	StatusUpdated = "cluster-autoscaler.kubernetes.io/last-updated"
	statusFormat  = "2006-01-02 15:04:05.999999999 -0700 MST"
)

var statusWritten = regexp.MustCompile(
	`^(?:Cluster-autoscaler status at |time: "?)(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [-+]\d{4} \w+)`,
)

// StatusTime returns when the Cluster Autoscaler wrote its status.
func StatusTime(config *corev1.ConfigMap) (time.Time, error) {
	said := config.Annotations[StatusUpdated]
	if match := statusWritten.FindStringSubmatch(config.Data["status"]); said == "" && match != nil {
		said = match[1]
	}
	written, err := time.Parse(statusFormat, said)
	if err != nil {
		return time.Time{}, fmt.Errorf("the time when it was written is missing: %w", err)
	}
	return written, nil
}

func textCeilings(status string) []landing.Ceiling {
	var ceilings []landing.Ceiling
	name := ""
	for line := range strings.Lines(status) {
		if match := statusName.FindStringSubmatch(line); match != nil {
			name = match[1]
			continue
		}
		match := statusSizes.FindStringSubmatch(line)
		if match == nil || name == "" {
			continue
		}
		least, errLeast := strconv.ParseInt(match[1], 10, 64)
		most, errMost := strconv.ParseInt(match[2], 10, 64)
		if errLeast == nil && errMost == nil {
			ceilings = append(ceilings, ceilingOf(name, &least, &most))
		}
		name = ""
	}
	return ceilings
}

// ceilingOf ignores a maximum below the minimum: some providers report no maximum, which appears as 0.
func ceilingOf(group string, least, most *int64) landing.Ceiling {
	if least != nil && most != nil && *most < *least {
		most = nil
	}
	return landing.Ceiling{Group: group, MinNodes: least, MaxNodes: most, Source: landing.FromClusterAutoscaler}
}

// NodeClaimResource are Karpenter's NodeClaims, which have no namespace.
var NodeClaimResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodeclaims"}

// NodePoolResource are Karpenter's NodePools, which have no namespace.
var NodePoolResource = schema.GroupVersionResource{Group: "karpenter.sh", Version: "v1", Resource: "nodepools"}

// QuotaForAllPods reports whether a ResourceQuota is for all pods of its namespace. Those with scopes are for some, and
// it is not known which.
func QuotaForAllPods(quota *corev1.ResourceQuota) bool {
	return len(quota.Spec.Scopes) == 0 && quota.Spec.ScopeSelector == nil
}

// TakesOfQuota returns what a pod with these requests takes of a resource of a ResourceQuota; 0 if that does not bound
// pods by their requests (https://kubernetes.io/docs/concepts/policy/resource-quotas/).
func TakesOfQuota(key corev1.ResourceName, requests landing.Quantities) raydemand.Amount {
	if key == corev1.ResourcePods || key == "count/pods" {
		return raydemand.One
	}
	return requests[strings.TrimPrefix(string(key), "requests.")]
}
