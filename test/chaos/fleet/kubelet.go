package fleet

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	corelisters "k8s.io/client-go/listers/core/v1"

	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/chaos/verdict"
	"heliostat.dev/heliostat/test/simray"
)

// How long things take on these machines. A container starts after startAfter to twice of it, and its Ray node joins
// after as long again. A container whose Ray node has ended starts again. A deleted pod ends after endAfter.
const (
	step         = 100 * time.Millisecond
	startAfter   = 300 * time.Millisecond
	restartAfter = 2 * time.Second
	endAfter     = 300 * time.Millisecond
	// forgiven is how long after the storage went back a pod that vanishes did so because of that.
	forgiven = 30 * time.Second
)

// kubelet plays the kubelets of all machines.
type kubelet struct {
	*Fleet
	// cache is nil while the objects are not read.
	cache   atomic.Pointer[cache]
	members map[string]*Member
	lives   map[types.UID]*life

	calls sync.WaitGroup
}

// cache are the objects that the kubelet reads.
type cache struct {
	pods  corelisters.PodLister
	nodes corelisters.NodeLister
}

// errUnread means that the objects are not read yet, or not again.
var errUnread = errors.New("the API server's objects are not read yet")

// list returns the pods of the fleet.
func (k *kubelet) list(selector labels.Selector) ([]*corev1.Pod, error) {
	c := k.cache.Load()
	if c == nil {
		return nil, errUnread
	}
	return c.pods.List(selector)
}

// life is what the kubelet knows of a pod.
type life struct {
	name, group string
	member      *Member
	worker      bool
	// bound, lost and ending are when the pod was first seen with a node, without its Ray node, and deleted. joined is
	// whether it had a Ray node.
	bound, lost, ending time.Time
	joined, ended       bool
	// seen is the last step in which the pod was there.
	seen time.Time
	// calling is closed when the call to the API server in progress has ended.
	calling chan struct{}
}

func newKubelet(f *Fleet) *kubelet {
	k := &kubelet{Fleet: f, members: map[string]*Member{}, lives: map[types.UID]*life{}}
	for _, m := range f.Members {
		k.members[m.Name] = m
	}
	return k
}

// run takes steps until ctx is done.
func (k *kubelet) run(ctx context.Context) {
	defer k.calls.Wait()
	ticker := time.NewTicker(step)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.step(ctx, time.Now())
		}
	}
}

// step looks at each pod once, and reports the state of each head.
func (k *kubelet) step(ctx context.Context, now time.Time) {
	objects := k.cache.Load()
	if objects == nil {
		return
	}
	pods, err := objects.pods.List(labels.Everything())
	if err != nil {
		return
	}
	living := map[string]map[string]verdict.Worker{}
	waits, smallest := map[string]map[string]int64{}, map[string]map[string]int64{}
	for name, m := range k.members {
		state := m.Head.State()
		living[name] = workers(state)
		waits[name], smallest[name] = waiting(state)
	}
	spent := map[string]map[string]int64{}
	for _, pod := range pods {
		l := k.life(pod, now)
		if l == nil {
			continue
		}
		k.live(ctx, objects.nodes, pod, l, living[l.member.Name], now)
		w, alive := living[l.member.Name][l.name]
		if alive && !l.ending.IsZero() {
			w.Ending = true
			living[l.member.Name][l.name] = w
		}
		if l.worker && (l.joined && !alive || w.Draining || !l.ending.IsZero()) {
			if spent[l.member.Name] == nil {
				spent[l.member.Name] = map[string]int64{}
			}
			spent[l.member.Name][l.group]++
		}
	}
	k.buryVanished(now)
	for name := range k.members {
		k.see(verdict.State{At: now, Cluster: name, Workers: living[name], Waiting: waits[name],
			Smallest: smallest[name], Spent: spent[name]})
	}
}

// life returns what is known of a pod, or nil if it is none of the fleet's.
func (k *kubelet) life(pod *corev1.Pod, now time.Time) *life {
	l := k.lives[pod.UID]
	if l == nil {
		member := k.members[pod.Labels["ray.io/cluster"]]
		if member == nil {
			return nil
		}
		l = &life{name: pod.Name, group: pod.Labels["ray.io/group"], member: member,
			worker: pod.Labels["ray.io/node-type"] == "worker"}
		k.lives[pod.UID] = l
	}
	l.seen = now
	return l
}

// live does what a kubelet would do for a pod now.
func (k *kubelet) live(
	ctx context.Context, nodes corelisters.NodeLister, pod *corev1.Pod, l *life, living map[string]verdict.Worker,
	now time.Time,
) {
	switch {
	case pod.DeletionTimestamp != nil:
		if l.ending.IsZero() {
			l.ending = now
		}
		if now.Sub(l.ending) > endAfter || pod.Spec.NodeName == "" {
			k.end(l, verdict.Deleted, now)
			k.call(l, func() error { return k.remove(ctx, pod) })
		}
	case pod.Spec.NodeName == "":
	case !machineIsThere(nodes, pod):
		k.end(l, verdict.Machine, now)
		k.call(l, func() error { return k.remove(ctx, pod) })
	case pod.Status.Phase == corev1.PodPending:
		if l.bound.IsZero() {
			l.bound = now
		}
		if now.Sub(l.bound) > pace(pod.Name) {
			k.call(l, func() error { return k.start(ctx, pod.DeepCopy(), l) })
		}
	case l.worker && pod.Status.Phase == corev1.PodRunning:
		_, alive := living[l.name]
		k.join(pod, l, alive, now)
	}
}

// machineIsThere reports whether the Node object of a pod exists.
func machineIsThere(nodes corelisters.NodeLister, pod *corev1.Pod) bool {
	_, err := nodes.Get(pod.Spec.NodeName)
	return err == nil
}

// join lets the Ray node of a running pod join, also again after it ended.
func (k *kubelet) join(pod *corev1.Pod, l *life, alive bool, now time.Time) {
	if alive {
		l.joined, l.lost = true, time.Time{}
		return
	}
	wait := pace(pod.Name)
	if l.joined {
		wait = restartAfter
	}
	if l.lost.IsZero() {
		l.lost = now
	}
	if now.Sub(l.lost) < wait {
		return
	}
	l.lost = time.Time{}
	l.member.Head.AddNode(
		simray.Node{Instance: l.name, Group: l.group, IP: pod.Status.PodIP, Resources: bundles[l.group]})
}

// end ends the Ray node of a pod, once.
func (k *kubelet) end(l *life, cause verdict.Cause, now time.Time) {
	if l.ended {
		return
	}
	l.ended = true
	if !l.worker {
		return
	}
	state := l.member.Head.State()
	worker := workers(state)[l.name]
	for _, node := range state.GetNodeStates() {
		if node.GetInstanceId() == l.name {
			l.member.Head.KillNode(raydemand.NodeID(node.GetNodeId()))
		}
	}
	k.see(verdict.End{At: now, Cluster: l.member.Name, Group: l.group, Pod: l.name, Cause: cause, Busy: worker.Busy})
}

// buryVanished ends the Ray nodes of pods that are gone without a grace period.
func (k *kubelet) buryVanished(now time.Time) {
	cause := verdict.Deleted
	if now.Sub(time.Unix(0, k.restored.Load())) < forgiven {
		cause = verdict.Storage
	}
	for uid, l := range k.lives {
		if l.seen.Equal(now) {
			continue
		}
		k.end(l, cause, now)
		delete(k.lives, uid)
	}
}

// call calls the API server, unless a call for this pod is in progress. An error is tried again in a later step.
func (k *kubelet) call(l *life, call func() error) {
	if l.calling != nil {
		select {
		case <-l.calling:
		default:
			return
		}
	}
	done := make(chan struct{})
	l.calling = done
	k.calls.Go(func() {
		defer close(done)
		_ = call() // tried again while the pod is not as it should be
	})
}

// remove removes a pod whose containers have ended.
func (k *kubelet) remove(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	err := k.kube.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name,
		metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// start writes the status of a pod whose containers run.
func (k *kubelet) start(ctx context.Context, pod *corev1.Pod, l *life) error {
	now := metav1.Now()
	ip := l.member.ip
	if l.worker {
		ip = addressOf(pod.UID)
	}
	pod.Status.Phase, pod.Status.PodIP, pod.Status.PodIPs = corev1.PodRunning, ip, []corev1.PodIP{{IP: ip}}
	pod.Status.StartTime = &now
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		started := true
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: c.Name,
			Image: c.Image, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}})
	}
	_, err := k.kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
	return err
}

// pace is how long the container of a pod takes to start, and again its Ray node to join.
func pace(pod string) time.Duration {
	return startAfter + startAfter*time.Duration(hash(pod)%1000)/1000
}

// addressOf returns an address for a pod, at which nothing listens.
func addressOf(uid types.UID) string {
	h := hash(string(uid))
	return fmt.Sprintf("10.%d.%d.%d", h>>16&0xff, h>>8&0xff, 1+h%250)
}

func hash(text string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(text))
	return h.Sum32()
}
