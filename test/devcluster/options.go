package devcluster

import (
	"io"
	"log/slog"
	"maps"
	"path/filepath"

	"heliostat.dev/heliostat/test/devcluster/kit"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// Options say what a cluster has. The zero value is a cluster with the operator and the nodes of nodes.yaml.
type Options struct {
	// Dir is where the cluster keeps its data, logs and kubeconfig. It must not hold anything else, and it is removed
	// with the cluster. Empty means a new directory in the cache.
	Dir string
	// Nodes are the nodes whose pods are real processes. Nil means DefaultNodes, an empty list none.
	Nodes []nodeagent.NodeSpec
	// Ray are the versions of Ray for which pods find an image rayproject/ray:<version>. Nil means DefaultRay. They are
	// not needed, and not made, where there are no nodes.
	Ray []string
	// Images are further images, and those that replace Ray's.
	Images nodeagent.Images
	// Kwok adds kwok, which plays the nodes that AddKwokNodes creates.
	Kwok bool
	// Kueue adds Kueue with its webhooks, which then decide on every RayCluster, RayJob, RayService, pod and job.
	Kueue bool
	// KueueFeatureGates are gates of Kueue that are not as by default, as NAME=true or NAME=false.
	KueueFeatureGates []string
	// InstanceTypes are those that Karpenter launches. Where there are some, the cluster has Karpenter, with a provider
	// whose nodes kwok plays; it needs Kwok.
	InstanceTypes []InstanceType
	// NoOperator leaves the KubeRay operator out. Its resource definitions are installed all the same.
	NoOperator bool
	// APIServerEnv are further variables of the API server, as KEY=value.
	APIServerEnv []string
	// OperatorEnv are variables of the operator, as KEY=value.
	OperatorEnv []string
	// Audit are users whose requests to the API server are recorded, for Audited.
	Audit []string
	// KeepLogs keeps Logs when the cluster is stopped or killed.
	KeepLogs bool
	// Out gets the progress of builds and the news of parts that die. Nil means nobody listens.
	Out io.Writer
	// Log gets the node agent's lines. Nil means a file beside the other logs.
	Log *slog.Logger
}

// withDefaults fills in what zero values stand for.
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

// Needs returns what a cluster with these options needs to be built.
func (o Options) Needs() (Needs, error) {
	o, err := o.withDefaults()
	if err != nil {
		return Needs{}, err
	}
	needs := kit.Cluster()
	needs.Ray = nil
	if o.Kwok {
		needs.Parts = append(needs.Parts, Kwok)
	}
	if o.Kueue {
		needs.Parts = append(needs.Parts, Kueue)
	}
	if o.karpenter() {
		needs.Parts = append(needs.Parts, Karpenter)
	}
	if len(o.Nodes) > 0 {
		needs.Ray = o.Ray
	}
	return needs, nil
}

// karpenter says whether the cluster has Karpenter.
func (o Options) karpenter() bool { return len(o.InstanceTypes) > 0 }

// images returns the table of images: Ray's own, replaced and joined by those of the options.
func (o Options) images(built *kit.Kit) nodeagent.Images {
	images := nodeagent.Images{}
	if len(o.Nodes) > 0 {
		for _, version := range o.Ray {
			images["rayproject/ray:"+version] = filepath.Join(built.RayEnv(version), "bin")
		}
	}
	maps.Copy(images, o.Images)
	return images
}
