package rig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"heliostat.dev/heliostat/pkg/raydemand/gcs"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
)

// SidecarImage is the Heliostat image for pods that run Heliostat instead of Ray's own autoscaler.
const SidecarImage = "dev/heliostat:dev"

// Options configure a rig.
type Options struct {
	// Out receives the progress of builds.
	Out io.Writer
	// Name is the dev cluster's name for the devcluster command. If it is empty, the cluster has no name.
	Name string
	// KeepLogs keeps all logs after Stop, as does the environment variable HELIOSTAT_KEEP_LOGS.
	KeepLogs bool
	// Nodes are the nodes whose pods are real processes. Nil means the dev cluster's default nodes.
	Nodes []nodeagent.NodeSpec
	// Ray is the version of Ray in pods and drivers, Kubernetes and KubeRay the releases of the control plane and of
	// the operator. Empty means the default.
	Ray, Kubernetes, KubeRay string
	// InstanceTypes are the types that Karpenter can launch. If there are any, the rig runs Karpenter. kwok simulates
	// its nodes, unless AdoptNodes makes the pods on them real processes.
	InstanceTypes []devcluster.InstanceType
	AdoptNodes    bool
	// ControlPlaneOnly starts the control plane without nodes and without the operator.
	ControlPlaneOnly bool
	// APIServerEnv are environment variables of the API server, as KEY=value.
	APIServerEnv []string
	// Kueue installs Kueue, in the release KueueRelease, by default the kit's. KueueFeatureGates sets its feature
	// gates, as NAME=true or NAME=false.
	Kueue             bool
	KueueRelease      string
	KueueFeatureGates []string
	// Coscheduling makes the gang scheduling of scheduler-plugins the operator's batch scheduler.
	Coscheduling bool
	// AuditRules say which requests the API server records in Cluster.AuditLog.
	AuditRules []auditv1.PolicyRule
	// Kwok simulates the nodes that the test adds with Cluster.AddKwokNodes. Pods there run nothing.
	Kwok bool
}

// Rig is a running dev cluster and a compiled Heliostat.
type Rig struct {
	Cluster *devcluster.Cluster
	Kube    kubernetes.Interface
	Dynamic dynamic.Interface
	// Program is the path of the autoscaler program. Dir is a directory that Stop removes.
	Program, Dir string
	// HeliostatEnv are additional environment variables of Heliostat, as KEY=value.
	HeliostatEnv []string
	// ray is the version of Ray in drivers.
	ray string
}

// Start builds the missing programs and starts a dev cluster. Stop stops it.
func Start(ctx context.Context, options Options) (*Rig, error) {
	cache, err := devcluster.CacheDir()
	if err != nil {
		return nil, err
	}
	dir, err := workDir(cache)
	if err != nil {
		return nil, err
	}
	program, err := Build(ctx, dir)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	// The directory serves as the sidecar's image. KubeRay calls its program `ray`.
	if err := os.Symlink(program, filepath.Join(dir, "ray")); err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the sidecar's image: %w", err), os.RemoveAll(dir))
	}
	options.Ray = cmp.Or(options.Ray, RayVersion)
	cluster, err := devcluster.Start(ctx, options.cluster(cache, dir))
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Rig{Cluster: cluster, Kube: cluster.Client(), Dynamic: cluster.Dynamic(), Program: program, Dir: dir,
		ray: options.Ray}, nil
}

// cluster returns the options of the dev cluster. The directory dir is the sidecar's image.
func (o Options) cluster(cache, dir string) devcluster.Options {
	nodes := o.Nodes
	if o.ControlPlaneOnly {
		nodes = []nodeagent.NodeSpec{}
	}
	return devcluster.Options{
		Dir:           o.runDir(cache),
		Images:        nodeagent.Images{SidecarImage: dir},
		Out:           o.Out,
		KeepLogs:      o.KeepLogs || os.Getenv("HELIOSTAT_KEEP_LOGS") != "",
		Ray:           []string{o.Ray},
		Kubernetes:    o.Kubernetes,
		KubeRay:       o.KubeRay,
		Nodes:         nodes,
		NoOperator:    o.ControlPlaneOnly,
		APIServerEnv:  o.APIServerEnv,
		InstanceTypes: o.InstanceTypes, AdoptNodes: o.AdoptNodes,
		Kwok:  o.Kwok || len(o.InstanceTypes) > 0 && !o.AdoptNodes,
		Kueue: o.Kueue, KueueRelease: o.KueueRelease, KueueFeatureGates: o.KueueFeatureGates,
		Coscheduling: o.Coscheduling, AuditRules: o.AuditRules,
	}
}

// runDir returns the directory of a named cluster.
func (o Options) runDir(cache string) string {
	if o.Name == "" {
		return ""
	}
	return filepath.Join(devcluster.RunDir(cache), o.Name)
}

// workDir creates a rig's directory in the cache.
func workDir(cache string) (string, error) {
	parent := filepath.Join(cache, "rig")
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", fmt.Errorf("creating the rig's directory: %w", err)
	}
	dir, err := os.MkdirTemp(parent, "")
	if err != nil {
		return "", fmt.Errorf("creating the rig's directory: %w", err)
	}
	return dir, nil
}

// Stop stops the dev cluster and all its pods, and removes the rig's directory. The caller stops Heliostat and the
// drivers.
func (r *Rig) Stop(ctx context.Context) error {
	return errors.Join(r.Cluster.Stop(ctx), os.RemoveAll(r.Dir))
}

// Python returns the path of the Python interpreter that has Ray installed.
func (r *Rig) Python() string {
	return filepath.Join(r.Cluster.RayEnv(r.ray), "bin", "python")
}

// Create creates a RayCluster. It also creates the namespace if it does not exist.
func (r *Rig) Create(ctx context.Context, cluster *unstructured.Unstructured) error {
	return r.CreateAny(ctx, RayClusters, cluster)
}

// GCS connects to the GCS of a RayCluster's head pod.
func (r *Rig) GCS(ctx context.Context, namespace, name string) (*gcs.Client, error) {
	address, err := r.Head(ctx, namespace, name)
	if err != nil {
		return nil, err
	}
	return gcs.Dial(gcs.Config{Address: address})
}

// Driver connects a driver to a RayCluster whose head is alive. The driver's files are in a directory named label.
// Driver adds env to the driver's environment.
func (r *Rig) Driver(ctx context.Context, namespace, name, label string, env ...string) (*Driver, error) {
	address, err := r.Head(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("starting driver %s: %w", label, err)
	}
	dir := filepath.Join(r.Dir, label)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("starting driver %s: %w", label, err)
	}
	defer r.Cluster.Awaiting("Ray to accept a driver")()
	return StartDriver(ctx, r.Python(), address, dir, env...)
}
