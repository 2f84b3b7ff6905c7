package kube

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/attached"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// namespaceClient is the calls that reading namespaces needs.
type namespaceClient interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error)
	reflector.Client[*corev1.NamespaceList]
}

// namespaceWatch holds the settings that namespaces have for their RayClusters: the mode and the isolation. It watches
// all namespaces, or polls those that are served by name, which a Role in each namespace can grant. If that is
// forbidden, the mode of a namespace is unknown, and Heliostat does not write to a RayCluster without a mode of its
// own. The same holds for a namespace that has not been read yet.
type namespaceWatch struct {
	*attached.Objects[*corev1.Namespace, namespaceSettings]
	client namespaceClient
	named  []string
	log    *slog.Logger
	// isolations are the last known ones: they only restrict, so they hold while a namespace cannot be read.
	isolations sync.Map
}

// namespaceSettings are the annotations of one namespace that apply to its RayClusters. An empty isolation means none.
type namespaceSettings struct {
	isolation, mode string
	// hasMode: mode is set, and may be empty, which is not a mode.
	hasMode bool
}

func settingsOf(namespace *corev1.Namespace) namespaceSettings {
	settings := namespaceSettings{isolation: namespace.Annotations[nodepool.IsolationAnnotation]}
	settings.mode, settings.hasMode = namespace.Annotations[decode.ModeAnnotation]
	return settings
}

// NamespacesForbidden says that this process may not read namespaces, so it knows neither the mode nor the isolation
// that they set.
const NamespacesForbidden = "namespaces-forbidden"

// newNamespaces prepares the reads; Start begins them. named are the served namespaces; empty means all. changed is
// called after the settings of a namespace changed.
func newNamespaces(
	client namespaceClient,
	named []string,
	log *slog.Logger,
	changed func(namespace string),
) *namespaceWatch {
	n := &namespaceWatch{client: client, named: named, log: log}
	n.Objects = attached.New(
		attached.Config{Namespaces: named, Changed: func(of nodepool.ClusterKey) {
			if values, state := n.Of(of, ""); len(values) == 0 && state.Unknown == "" { // it is gone
				n.isolations.Delete(of.Namespace)
			}
			changed(of.Namespace)
		}},
		attached.Kind[*corev1.Namespace, namespaceSettings]{
			Source: func(all string) reflector.Source {
				source := reflector.Of("namespaces", &corev1.Namespace{}, client, metav1.ListOptions{}, log)
				source.Forbidden = func(err error) { n.Unread(all, err.Error()) }
				return source
			},
			Read: func(object *corev1.Namespace) (attached.Object[namespaceSettings], bool) {
				of := nodepool.ClusterKey{Namespace: object.Name} // it is for all RayClusters there
				n.isolations.Store(object.Name, settingsOf(object).isolation)
				return attached.Object[namespaceSettings]{Cluster: of, Value: settingsOf(object)}, true
			},
			Unread: func(_, why string) { log.Info("reading namespaces is forbidden", "reason", why) },
		})
	return n
}

const (
	// namespacePoll is the pause between two reads of a served namespace.
	namespacePoll = time.Second
	// namespacesLast is how long a reading counts while no other succeeds: a mode that was removed must stop writes.
	namespacesLast = 5 * time.Second
	// namespaceShare bounds these reads to 20 per second, whatever the number of namespaces.
	namespaceShare = 50 * time.Millisecond
)

// Start reads namespaces until ctx ends.
func (n *namespaceWatch) Start(ctx context.Context) error {
	if len(n.named) == 0 {
		return n.Objects.Start(ctx)
	}
	reflector.Each(slices.Values(n.named), func(name string) {
		pause := max(namespacePoll, time.Duration(len(n.named))*namespaceShare)
		read := time.Now()
		for n.poll(ctx, name, &read); reflector.Sleep(ctx, reflector.Jittered(pause)); {
			n.poll(ctx, name, &read)
		}
	})
	return nil
}

// poll reads one namespace; read is when the API server last answered. If it does not answer for namespacesLast, the
// mode is unknown, as if the namespace may not be read.
func (n *namespaceWatch) poll(ctx context.Context, name string, read *time.Time) {
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	namespace, err := n.client.Get(ctx, name, metav1.GetOptions{})
	store, before := n.Store(name), *read
	*read = time.Now()
	switch {
	case err == nil:
		store.ReplaceAll([]*corev1.Namespace{namespace}, "")
	case apierrors.IsNotFound(err):
		store.ReplaceAll(nil, "")
	case apierrors.IsForbidden(err):
		n.Unread(name, err.Error())
	default:
		n.log.Debug("reading a namespace failed; retrying", "namespace", name, "reason", err)
		if *read = before; time.Since(before) > namespacesLast {
			n.Unread(name, err.Error())
		}
	}
}

// AddTo adds to a cluster the settings of its namespace that it does not have itself.
func (n *namespaceWatch) AddTo(cluster *nodepool.Cluster) {
	namespace := cluster.Key.Namespace
	values, state := n.Of(nodepool.ClusterKey{Namespace: namespace}, "")
	forbidden, unknown := state.Tried && state.Unknown != "", ""
	var settings namespaceSettings
	switch {
	case forbidden:
		unknown = "this process may not read Namespace " + namespace
		if last, known := n.isolations.Load(namespace); known {
			settings.isolation = last.(string)
		}
	case len(values) == 0:
		unknown = "Namespace " + namespace + " has not been read yet"
	default:
		settings = values[0]
	}
	addMode(cluster, settings, unknown)
	addIsolation(cluster, settings.isolation)
	if forbidden {
		addForbidden(cluster)
	}
}

// Recheck reads the namespace of a cluster that has no mode of its own again: a watch that stalls would hide that the
// mode was removed. The mode is unknown if the namespace has another one by now, or cannot be read at the moment. With
// the right to watch alone, it is the one that the watch shows.
func (n *namespaceWatch) Recheck(ctx context.Context, cluster *nodepool.Cluster) {
	name := cluster.Key.Namespace
	if cluster.Mode != "" || cluster.NamespaceUnknown != "" {
		return
	}
	namespace, err := n.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsForbidden(err):
	case err != nil:
		cluster.NamespaceUnknown = "Namespace " + name + " cannot be read at the moment"
	default:
		var now nodepool.Cluster
		if addMode(&now, settingsOf(namespace), ""); now.NamespaceMode != cluster.NamespaceMode {
			cluster.NamespaceUnknown = "the mode of Namespace " + name + " has just changed"
		}
	}
}

// addMode sets the mode of the namespace. An unreadable mode is shadow, so it never means managed.
func addMode(cluster *nodepool.Cluster, namespace namespaceSettings, unknown string) {
	if cluster.Mode != "" {
		return
	}
	if cluster.NamespaceUnknown = unknown; !namespace.hasMode {
		return
	}
	cluster.NamespaceMode = nodepool.Mode(namespace.mode)
	if !cluster.NamespaceMode.Valid() {
		cluster.NamespaceMode, cluster.ModeInvalid = nodepool.Shadow, strconv.Quote(namespace.mode)
		cluster.Findings = append(cluster.Findings, unreadableSetting(
			cluster,
			decode.ModeAnnotation,
			cmp.Or(namespace.mode, cluster.ModeInvalid),
			"it is not a mode; Heliostat plans and reports the RayClusters of the namespace that have no mode of "+
				"their own, and writes nothing",
			"write managed, shadow or off",
		))
	}
}

// addIsolation sets the isolation that the namespace requires. An unreadable one requires hardware.
func addIsolation(cluster *nodepool.Cluster, isolation string) {
	if cluster.Isolation != "" || isolation == "" {
		return
	}
	required, err := nodepool.IsolationOf("", isolation)
	cluster.Isolation = required
	if err != nil {
		cluster.Findings = append(
			cluster.Findings,
			unreadableSetting(
				cluster,
				nodepool.IsolationAnnotation,
				isolation,
				"it is not an isolation, so GPUs are used only where hardware keeps them apart",
				"write hardware, limit or any",
			),
		)
	}
}

func unreadableSetting(cluster *nodepool.Cluster, annotation, seen, why, fix string) raydemand.Finding {
	return raydemand.Finding{
		Code: decode.AnnotationUnreadable, Severity: raydemand.Error, Object: "Namespace " + cluster.Key.Namespace,
		Field: fieldpath.NewPath("metadata", "annotations", annotation).String(), Seen: decode.Short(seen), Why: why,
		Fix: fix,
	}
}

// addForbidden reports unknown settings of the namespace if they matter: for a cluster without a mode of its own, and
// for a cluster with GPUs and without an isolation.
func addForbidden(cluster *nodepool.Cluster) {
	gpus := slices.ContainsFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return len(g.Slices) > 0 })
	if cluster.Mode != "" && (cluster.Isolation != "" || !gpus) {
		return
	}
	cluster.Findings = append(cluster.Findings, raydemand.Finding{
		Code: NamespacesForbidden, Severity: raydemand.Warning, Object: "RayCluster " + cluster.Key.String(),
		Why: "this process may read Namespace " + cluster.Key.Namespace + " neither by list and watch nor by get, so " +
			"the mode and the isolation of GPUs that it sets are unknown: Heliostat does not write to a RayCluster " +
			"without a mode of its own, and enforces no isolation of GPUs but its own",
		Fix: "grant it get, list and watch on namespaces by a ClusterRole, or get on namespaces by a Role in " +
			cluster.Key.Namespace + "; or annotate the RayCluster with " + decode.ModeAnnotation + " and " +
			nodepool.IsolationAnnotation,
	})
}
