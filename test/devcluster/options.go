package devcluster

import (
	"io"
	"log/slog"
	"maps"
	"path/filepath"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// Options configure a cluster. The zero value means a cluster with the operator and the nodes of nodes.yaml.
type Options struct {
	// Dir is the directory of the cluster's data, logs and kubeconfig. It must be empty or new, and is removed with the
	// cluster. Empty means a new directory in the cache.
	Dir string
	// Nodes are the nodes whose pods are real processes. Nil means DefaultNodes, an empty list none.
	Nodes []nodeagent.NodeSpec
	// Ray are the versions of Ray with an image rayproject/ray:<version>. Nil means DefaultRay. Without nodes, none are
	// installed.
	Ray []string
	// Kubernetes, KubeRay and KueueRelease are releases of the control plane, the operator and Kueue, from
	// kit.Releases. Empty means the default.
	Kubernetes, KubeRay, KueueRelease string
	// Images are further images, or replacements of Ray's.
	Images nodeagent.Images
	// Kwok adds kwok, which simulates the nodes of AddKwokNodes.
	Kwok bool
	// Kueue adds Kueue with its webhooks for every RayCluster, RayJob, RayService, pod and job.
	Kueue bool
	// KueueFeatureGates change Kueue's feature gates, as NAME=true or NAME=false.
	KueueFeatureGates []string
	// Coscheduling makes the gang scheduling of scheduler-plugins the operator's batch scheduler. The cluster's only
	// scheduler is then one that has it.
	Coscheduling bool
	// InstanceTypes are what Karpenter launches. If there are any, the cluster has Karpenter. kwok simulates its nodes,
	// which needs Kwok, unless AdoptNodes is set.
	InstanceTypes []InstanceType
	// AdoptNodes makes the pods on Karpenter's nodes real processes. A node is gone with its processes when its Node
	// object is deleted. Annotation nodeagent.ReadyAfterAnnotation of a NodePool's template delays that it is Ready.
	AdoptNodes bool
	// NoOperator leaves out the KubeRay operator, but not its resource definitions.
	NoOperator bool
	// APIServerEnv are further variables of the API server, as KEY=value.
	APIServerEnv []string
	// Audit are users whose requests the API server records, for Audited. AuditRules say what else it records; the
	// first rule that matches a request counts, and all are before Audit.
	Audit      []string
	AuditRules []auditv1.PolicyRule
	// KeepLogs keeps Logs when the cluster is stopped or killed.
	KeepLogs bool
	// Out receives the progress of builds and reports of parts that die. Nil discards them.
	Out io.Writer
	// Log receives the node agent's lines. Nil means a file among the other logs.
	Log *slog.Logger
}

// withDefaults replaces zero values by defaults.
func (o Options) withDefaults() (Options, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Nodes == nil {
		nodes, err := DefaultNodes()
		if err != nil {
			return o, err
		}
		o.Nodes = nodes
	}
	if o.Ray == nil {
		o.Ray = []string{DefaultRay}
	}
	return o, nil
}

// Needs returns what to build for a cluster with these options.
func (o Options) Needs() (Needs, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Needs{}, err
	}
	needs := kit.Cluster()
	needs.Ray = nil
	needs.Releases = map[string]string{kit.Kubernetes: o.Kubernetes, kit.KubeRay: o.KubeRay,
		kit.KueueModule: o.KueueRelease}
	if o.Kwok {
		needs.Parts = append(needs.Parts, Kwok)
	}
	if o.Kueue {
		needs.Parts = append(needs.Parts, Kueue)
	}
	if o.Coscheduling {
		needs.Parts = append(needs.Parts, Coscheduling)
	}
	if o.karpenter() {
		needs.Parts = append(needs.Parts, Karpenter)
	}
	if o.processes() {
		needs.Ray = o.Ray
	}
	return needs, nil
}

// processes reports whether there are or will be nodes whose pods are real processes.
func (o Options) processes() bool { return len(o.Nodes) > 0 || o.AdoptNodes }

// karpenter reports whether the cluster has Karpenter.
func (o Options) karpenter() bool { return len(o.InstanceTypes) > 0 }

// images returns the table of images: Ray's own, and those of the options, which win.
func (o Options) images(built *kit.Kit) nodeagent.Images {
	images := nodeagent.Images{}
	if o.processes() {
		for _, version := range o.Ray {
			images["rayproject/ray:"+version] = filepath.Join(built.RayEnv(version), "bin")
		}
	}
	maps.Copy(images, o.Images)
	return images
}
