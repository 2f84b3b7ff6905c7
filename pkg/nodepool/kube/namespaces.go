package kube

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/reflector"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// namespaceClient is the calls that reading namespaces needs.
type namespaceClient interface {
	Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.Namespace, error)
	reflector.Client[*corev1.NamespaceList]
}

// namespaceWatch holds the settings that namespaces have for their RayClusters: the mode and the isolation. If a
// deployment may not list and watch namespaces, it polls those that it serves by name, which a Role in each namespace
// can grant. If that is forbidden too, the mode of a namespace is unknown, and Heliostat does not write to a RayCluster
// without a mode of its own.
type namespaceWatch struct {
	client namespaceClient
	// named are the served namespaces; empty means all.
	named []string
	log   *slog.Logger
	// changed is called after the settings of a namespace changed, with "" after several changed.
	changed func(namespace string)
	// answered is closed once the API server has listed namespaces, or has forbidden it and the named ones have been
	// polled.
	answered   chan struct{}
	answerOnce sync.Once

	mu sync.Mutex
	// Guarded by mu. A known isolation stays valid if the right to read is lost, because it only restricts.
	settings  map[string]namespaceSettings
	forbidden bool
	// versions has the resourceVersion of the newest reading of each namespace, or of its deletion. A watch, a list and
	// single reads can overtake each other, and an older reading must not restore a mode that was removed.
	versions map[string]string
	// getForbiddenUntil is when to read a single namespace again.
	getForbiddenUntil map[string]time.Time
}

// namespaceSettings are the annotations of one namespace that apply to its RayClusters. Empty means none.
type namespaceSettings struct {
	isolation, mode string
	// unknown says why mode may be out of date; otherwise empty.
	unknown string
}

// NamespacesForbidden says that this process may not read namespaces, so it knows neither the mode nor the isolation
// that they set.
const NamespacesForbidden = "namespaces-forbidden"

func newNamespaces(
	client namespaceClient,
	named []string,
	log *slog.Logger,
	changed func(namespace string),
) *namespaceWatch {
	return &namespaceWatch{
		client:            client,
		named:             named,
		log:               log,
		changed:           changed,
		answered:          make(chan struct{}),
		settings:          map[string]namespaceSettings{},
		versions:          map[string]string{},
		getForbiddenUntil: map[string]time.Time{},
	}
}

// Start reads namespaces until ctx ends.
func (n *namespaceWatch) Start(ctx context.Context) error {
	var polling sync.WaitGroup
	polling.Go(func() { n.poll(ctx) })
	defer polling.Wait()
	source := reflector.Of("namespaces", &corev1.Namespace{}, n.client, metav1.ListOptions{})
	source.Forbidden = n.forbid
	source.Failed = func(err error) { n.log.Debug("reading namespaces failed; retrying", "reason", err) }
	source.Into(ctx, n.store())
	return nil
}

// Await returns when the API server has responded once, or after a while.
func (n *namespaceWatch) Await(ctx context.Context) {
	select {
	case <-n.answered:
	case <-ctx.Done():
	case <-time.After(reflector.RequestTimeout):
	}
}

func (n *namespaceWatch) answer() { n.answerOnce.Do(func() { close(n.answered) }) }

// forbid notes that this process may not list and watch namespaces, so it would miss a change of a mode.
func (n *namespaceWatch) forbid(err error) {
	n.mu.Lock()
	before := n.forbidden
	n.forbidden = true
	if !before {
		for name, known := range n.settings {
			known.unknown = mayNotRead(name)
			n.settings[name] = known
		}
	}
	n.mu.Unlock()
	if len(n.named) == 0 {
		n.answer()
	}
	if !before {
		n.log.Info("listing and watching namespaces is forbidden; polling the served namespaces by name", "reason", err)
		n.changed("")
	}
}

// markUnknown notes that an unwatched namespace cannot be read by name: nothing else would show that its mode was
// removed.
func (n *namespaceWatch) markUnknown(name, why string) {
	n.mu.Lock()
	known := n.settings[name]
	news := n.forbidden && known.unknown != why
	if known.unknown = why; news {
		n.settings[name] = known
	}
	n.mu.Unlock()
	if news {
		n.changed(name)
	}
}

func mayNotRead(namespace string) string { return "this process may not read Namespace " + namespace }

// poll reads the served namespaces by name while listing them is forbidden. It is as fast as the poll of a sidecar, so
// that removing a mode stops writes within a second.
func (n *namespaceWatch) poll(ctx context.Context) {
	for len(n.named) > 0 && reflector.Sleep(ctx, reflector.DefaultPoll) {
		n.mu.Lock()
		forbidden := n.forbidden
		n.mu.Unlock()
		if !forbidden {
			continue
		}
		for _, name := range n.named {
			n.Refresh(ctx, name)
		}
		n.answer()
	}
}

// Refresh reads one namespace from the API server. If that is forbidden, what is known stays.
func (n *namespaceWatch) Refresh(ctx context.Context, name string) {
	n.mu.Lock()
	resting, seen := time.Now().Before(n.getForbiddenUntil[name]), n.versions[name]
	n.mu.Unlock()
	if resting {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, reflector.RequestTimeout)
	defer cancel()
	namespace, err := n.client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil:
		n.update(namespace)
	case apierrors.IsNotFound(err):
		n.drop(name, seen, seen)
	case apierrors.IsForbidden(err):
		n.mu.Lock()
		now := time.Now()
		maps.DeleteFunc(n.getForbiddenUntil, func(_ string, until time.Time) bool { return !now.Before(until) })
		n.getForbiddenUntil[name] = now.Add(reflector.Jittered(reflector.ForbiddenPause))
		n.mu.Unlock()
		n.markUnknown(name, mayNotRead(name))
	default:
		n.log.Debug("reading a namespace failed; retrying", "namespace", name, "reason", err)
		n.markUnknown(name, "Namespace "+name+" cannot be read at the moment")
	}
}

// AddTo adds to a cluster the settings of its namespace that it does not have itself.
func (n *namespaceWatch) AddTo(cluster *nodepool.Cluster) {
	n.mu.Lock()
	known, read := n.settings[cluster.Key.Namespace]
	forbidden := n.forbidden
	n.mu.Unlock()
	if !read {
		known.unknown = "Namespace " + cluster.Key.Namespace + " has not been read yet"
		if forbidden {
			known.unknown = mayNotRead(cluster.Key.Namespace)
		}
	}
	addMode(cluster, known)
	addIsolation(cluster, known)
	if forbidden && known.unknown != "" {
		addForbidden(cluster)
	}
}

// addMode sets the mode of the namespace. An unreadable mode is shadow, so it never means managed.
func addMode(cluster *nodepool.Cluster, namespace namespaceSettings) {
	if cluster.Mode != "" {
		return
	}
	if cluster.NamespaceUnknown = namespace.unknown; namespace.unknown != "" || namespace.mode == "" {
		return
	}
	cluster.NamespaceMode = nodepool.Mode(namespace.mode)
	if !cluster.NamespaceMode.Valid() {
		cluster.NamespaceMode, cluster.ModeInvalid = nodepool.Shadow, strconv.Quote(namespace.mode)
		if namespace.mode == emptyMode {
			cluster.ModeInvalid = emptyMode
		}
		cluster.Findings = append(cluster.Findings, unreadableSetting(
			cluster,
			decode.ModeAnnotation,
			namespace.mode,
			"it is not a mode; Heliostat plans and reports the RayClusters of the namespace that have no mode of "+
				"their own, and writes nothing",
			"write managed, shadow or off",
		))
	}
}

// addIsolation sets the isolation that the namespace requires. An unreadable one requires hardware.
func addIsolation(cluster *nodepool.Cluster, namespace namespaceSettings) {
	if cluster.Isolation != "" || namespace.isolation == "" {
		return
	}
	required, err := nodepool.IsolationOf("", namespace.isolation)
	cluster.Isolation = required
	if err != nil {
		cluster.Findings = append(
			cluster.Findings,
			unreadableSetting(
				cluster,
				nodepool.IsolationAnnotation,
				namespace.isolation,
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
	unguarded := cluster.Isolation == "" && gpus
	var why, fix string
	switch {
	case cluster.Mode == "" && unguarded:
		why, fix = "the mode and the isolation of GPUs that the namespace sets are unknown, and Heliostat does not "+
			"write to the RayCluster without knowing its mode",
			decode.ModeAnnotation+" and "+nodepool.IsolationAnnotation
	case cluster.Mode == "":
		why, fix = "the mode that the namespace sets is unknown, and Heliostat does not write to the RayCluster "+
			"without knowing it", decode.ModeAnnotation
	case unguarded:
		why, fix = "the isolation of GPUs that the namespace requires by default is not "+
			"enforced", nodepool.IsolationAnnotation
	default:
		return
	}
	namespace := cluster.Key.Namespace
	cluster.Findings = append(cluster.Findings, raydemand.Finding{
		Code:     NamespacesForbidden,
		Severity: raydemand.Warning,
		Object:   "RayCluster " + cluster.Key.String(),
		Why: fmt.Sprintf(
			"this process may read Namespace %s neither by list and watch nor by get: %s",
			namespace,
			why,
		),
		Fix: fmt.Sprintf(
			"grant it get, list and watch on namespaces by a ClusterRole, or get on namespaces by a Role in %s; or "+
				"annotate the RayCluster with %s",
			namespace,
			fix,
		),
	})
}

// store passes what a reflector reads to n.
func (n *namespaceWatch) store() *reflector.Store[*corev1.Namespace] {
	return &reflector.Store[*corev1.Namespace]{Put: n.update, Remove: n.remove, ReplaceAll: n.replace}
}

// remove forgets a namespace that was deleted.
func (n *namespaceWatch) remove(namespace *corev1.Namespace) {
	n.drop(namespace.Name, "", namespace.ResourceVersion)
}

// replace takes a whole list: the first one, or the one after a watch broke. Newer single readings stay.
func (n *namespaceWatch) replace(list []*corev1.Namespace, version string) {
	read, versions := make(map[string]namespaceSettings, len(list)), make(map[string]string, len(list))
	for _, namespace := range list {
		read[namespace.Name], versions[namespace.Name] = settingsOf(namespace), namespace.ResourceVersion
	}
	n.mu.Lock()
	for name, newest := range n.versions {
		if !reflector.Older(cmp.Or(versions[name], version), newest) {
			continue
		}
		versions[name] = newest
		if known, there := n.settings[name]; there {
			known.unknown = ""
			read[name] = known
		} else {
			delete(read, name)
		}
	}
	news := n.forbidden || !maps.Equal(n.settings, read)
	n.settings, n.versions, n.forbidden = read, versions, false
	n.mu.Unlock()
	n.answer()
	if news {
		n.changed("")
	}
}

func settingsOf(namespace *corev1.Namespace) namespaceSettings {
	mode, set := namespace.Annotations[decode.ModeAnnotation]
	if set && mode == "" {
		mode = emptyMode
	}
	return namespaceSettings{isolation: namespace.Annotations[nodepool.IsolationAnnotation], mode: mode}
}

// emptyMode stands for an annotation that is present and empty, which is not a mode.
const emptyMode = `""`

// update keeps the settings of a namespace, unless newer ones are known. If a namespace is neither watched nor polled,
// its mode is unknown: it may change at any time.
func (n *namespaceWatch) update(namespace *corev1.Namespace) {
	settings := settingsOf(namespace)
	n.mu.Lock()
	if reflector.Older(namespace.ResourceVersion, n.versions[namespace.Name]) {
		n.mu.Unlock()
		return
	}
	n.versions[namespace.Name] = namespace.ResourceVersion
	if n.forbidden && !slices.Contains(n.named, namespace.Name) {
		settings.unknown = mayNotRead(namespace.Name)
	}
	before, known := n.settings[namespace.Name]
	n.settings[namespace.Name] = settings
	n.mu.Unlock()
	if !known || before != settings {
		n.changed(namespace.Name)
	}
}

// maxGone bounds how many namespaces that are gone are remembered. Beyond it all are forgotten: a read that arrives
// late may then show one again, until the next list.
const maxGone = 10_000

// drop forgets a namespace that was gone at a version. seen is the version known before the read that did not find it;
// empty if the watch reports it.
func (n *namespaceWatch) drop(namespace, seen, version string) {
	n.mu.Lock()
	newest := n.versions[namespace]
	if seen != "" && seen != newest || reflector.Older(version, newest) {
		n.mu.Unlock()
		return
	}
	n.versions[namespace] = version
	_, known := n.settings[namespace]
	delete(n.settings, namespace)
	if len(n.versions)-len(n.settings) > maxGone {
		maps.DeleteFunc(n.versions, func(name, _ string) bool { _, there := n.settings[name]; return !there })
	}
	n.mu.Unlock()
	if known {
		n.changed(namespace)
	}
}
