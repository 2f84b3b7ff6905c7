package neighbours

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/api/apiv1"
	"heliostat.dev/heliostat/internal/planner"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
	"heliostat.dev/heliostat/test/devcluster"
	"heliostat.dev/heliostat/test/devcluster/nodeagent"
	"heliostat.dev/heliostat/test/rig"
	"heliostat.dev/heliostat/test/simray"
)

// slowStart is the time until the machines of pool "slow" are ready. It is longer than the time that Heliostat waits
// for pods about which no node autoscaler reports anything: a fifth of allocationTimeout.
const (
	slowStart         = time.Minute
	allocationTimeout = 200 * time.Second
)

// karpenterLab is a dev cluster with Karpenter and Heliostat that all scenarios share. Each scenario has its own
// NodePools and instance types.
type karpenterLab struct {
	*testing.T
	*rig.Rig
	heliostat *rig.Heliostat
	began     time.Time
	log       *os.File
	mu        sync.Mutex // guards log
}

// gpuType returns an instance type with one GPU. The types listed in dry are out of stock from the start.
func gpuType(name string, price float64) devcluster.InstanceType {
	return devcluster.InstanceType{Name: name, Price: price, Resources: map[string]string{"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "1"}}
}

func TestBesideKarpenter(t *testing.T) {
	t.Parallel()
	types := []devcluster.InstanceType{{Name: "cpu", Price: 0.1, Resources: map[string]string{"cpu": "64", "memory": "64Gi"}}}
	for _, name := range []string{"slow", "first", "second", "dry1", "dry2", "alone", "limited", "static", "deleted", "dies", "buffer", "ahead",
		"evicted", "evicted-in-tree", "shared", "unguarded"} {
		types = append(types, gpuType(name, 1))
	}
	k := startKarpenterLab(t, types)
	run := func(name string, begin func(*testing.T), scenario func(*karpenterLab)) {
		t.Run(name, func(t *testing.T) {
			begin(t)
			t.Parallel()
			scenario(&karpenterLab{T: t, Rig: k.Rig, heliostat: k.heliostat, began: k.began, log: k.log})
		})
	}
	// Karpenter looks at all pending pods as soon as a pod or node appears. Heliostat's behavior with Karpenter's usual
	// 10 s is visible only while nothing else happens: while the test waits for the slow nodes.
	var lively sync.WaitGroup
	for name, scenario := range map[string]func(*karpenterLab){
		"a limit": limitReached, "a static pool": staticPool, "a deleted NodePool": deletedNodePool, "a dead node": deadNode, "a buffer": bufferedCapacity, "a warm node": warmNode,
		"an eviction":                          evictedBesideAReduction("evicted", false),
		"an eviction with in-tree autoscaling": evictedBesideAReduction("evicted-in-tree", true),
		"the last card":                        lastCard, "the doctor": examined,
	} {
		run(name, func(t *testing.T) {
			lively.Add(1)
			t.Cleanup(lively.Done)
		}, scenario)
	}
	run("twenty slow nodes", func(*testing.T) {}, twentySlowNodes)
	run("stock", func(*testing.T) {}, func(k *karpenterLab) {
		lively.Wait()
		secondPoolInStock(k)
		bothPoolsOut(k)
		onlyPoolOut(k)
	})
}

// startKarpenterLab starts all components, and stops them after the last scenario.
func startKarpenterLab(t *testing.T, types []devcluster.InstanceType) *karpenterLab {
	t.Helper()
	k := &karpenterLab{T: t, began: time.Now()}
	var err error
	if k.Rig, err = rig.Start(t.Context(), rig.Options{Out: os.Stderr, Nodes: []nodeagent.NodeSpec{}, InstanceTypes: types}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.stop)
	must(t, k.Cluster.OutOfStock("first", "dry1", "dry2", "alone"))
	if file := os.Getenv("HELIOSTAT_KARPENTER_LOG"); file != "" {
		if k.log, err = os.Create(file); err != nil {
			t.Fatal(err)
		}
	}
	heads := nodeagent.NodeSpec{Name: "heads", Capacity: map[string]string{"cpu": "64", "memory": "64Gi"}, Labels: map[string]string{"heads": "yes"}}
	must(t, k.Cluster.AddKwokNodes(t.Context(), heads))
	must(t, rig.InstallCRDs(t.Context(), k.Dynamic))
	k.nodeClass("fast", "1s")
	k.nodeClass("slow", slowStart.String())
	if k.heliostat, err = k.Serve(t.Context(), "--mode", "managed", "--warm-nodes", "--allocation-timeout", allocationTimeout.String(), "--log-level", "debug"); err != nil {
		t.Fatal(err)
	}
	return k
}

// stop ends Heliostat, whose last lines a failed test shows before its errors, and the dev cluster.
func (k *karpenterLab) stop() { stopLab(k.T, k.Rig, k.heliostat) }

func stopLab(t *testing.T, lab *rig.Rig, heliostat *rig.Heliostat) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if heliostat != nil {
		if t.Failed() {
			fmt.Fprintf(os.Stderr, "Heliostat's last lines:\n%s\n", heliostat.LastLines(60))
		}
		heliostat.Kill()
	}
	if err := lab.Stop(ctx); err != nil {
		t.Error(err)
	}
}

// note writes a line with the time since the start to the log of the run, if one is configured.
func (k *karpenterLab) note(format string, arguments ...any) {
	k.mu.Lock()
	defer k.mu.Unlock()
	line := fmt.Sprintf("%7.2f s  %-45s %s\n", time.Since(k.began).Seconds(), k.Name(), fmt.Sprintf(format, arguments...))
	if k.log != nil {
		_, _ = k.log.WriteString(line)
	}
}

func (k *karpenterLab) nodeClass(name, delay string) {
	k.Helper()
	must(k, k.Cluster.AddNodeClass(k.Context(), name, delay))
}

// nodePool creates a NodePool with one instance type of the same name. Pods select its nodes by the label team.
func (k *karpenterLab) nodePool(team string, pool devcluster.NodePool) {
	k.Helper()
	pool.Types, pool.Labels = []string{pool.Name}, map[string]string{"team": team}
	must(k, k.Cluster.AddNodePool(k.Context(), pool))
}

// rayTeam is one RayCluster in its own namespace, with a simulated head that its pods join.
type rayTeam struct {
	*karpenterLab
	key  nodepool.ClusterKey
	head *simray.Head
}

// headNumber is a counter that gives each head its own address.
var headNumber struct {
	sync.Mutex
	next int
}

// simulatedHead starts the head of a RayCluster at an address of its own. Its pods join it.
func (k *karpenterLab) simulatedHead(key nodepool.ClusterKey) *rayTeam {
	k.Helper()
	headNumber.Lock()
	headNumber.next++
	ip := fmt.Sprintf("127.78.0.%d", headNumber.next)
	headNumber.Unlock()
	head, err := simray.Start(simray.Options{Address: ip + ":6379", Head: simray.Node{Instance: key.Name + "-head", IP: ip}})
	must(k, err)
	k.Cleanup(head.Close)
	team := &rayTeam{karpenterLab: k, key: key, head: head}
	go team.play(k.Context(), ip)
	return team
}

// rayCluster creates a RayCluster. The name of each group is the value of the label that its pods select.
func (k *karpenterLab) rayCluster(name string, groups ...rig.Group) *rayTeam {
	k.Helper()
	return k.rayClusterOf(rig.Cluster{Namespace: name, Name: name, Groups: groups})
}

// rayClusterOf creates it from a manifest, perhaps a changed one.
func (k *karpenterLab) rayClusterOf(cluster rig.Cluster, changes ...func(*unstructured.Unstructured)) *rayTeam {
	k.Helper()
	manifest := cluster.Manifest()
	for _, change := range changes {
		change(manifest)
	}
	selectNodes(k, manifest, "headGroupSpec", map[string]string{"heads": "yes"})
	must(k, k.Rig.Create(k.Context(), manifest))
	return k.simulatedHead(nodepool.ClusterKey{Namespace: cluster.Namespace, Name: cluster.Name})
}

// selectNodes adds node selectors to the templates of a RayCluster: one for the head, and for each group the label team
// by the group's name.
func selectNodes(k *karpenterLab, manifest *unstructured.Unstructured, head string, labels map[string]string) {
	k.Helper()
	must(k, unstructured.SetNestedStringMap(manifest.Object, labels, "spec", head, "template", "spec", "nodeSelector"))
	groups, _, _ := unstructured.NestedSlice(manifest.Object, "spec", "workerGroupSpecs")
	for _, each := range groups {
		group := each.(map[string]any)
		selector := map[string]any{"team": group["groupName"]}
		if pool, byName := strings.CutPrefix(group["groupName"].(string), "pool-"); byName {
			selector = map[string]any{"karpenter.sh/nodepool": pool}
		}
		must(k, unstructured.SetNestedMap(group, selector, "template", "spec", "nodeSelector"))
	}
	must(k, unstructured.SetNestedSlice(manifest.Object, groups, "spec", "workerGroupSpecs"))
}

// play gives the head's pod the address of the simulated head, and makes running worker pods join the head.
func (r *rayTeam) play(ctx context.Context, ip string) {
	joined := map[string]raydemand.NodeID{}
	for ctx.Err() == nil {
		pods, err := r.Kube.CoreV1().Pods(r.key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "ray.io/cluster=" + r.key.Name})
		if err == nil {
			r.playPods(ctx, pods.Items, ip, joined)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (r *rayTeam) playPods(ctx context.Context, pods []corev1.Pod, ip string, joined map[string]raydemand.NodeID) {
	there := map[string]bool{}
	for i := range pods {
		pod := &pods[i]
		there[pod.Name] = true
		if pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if pod.Labels["ray.io/node-type"] == "head" {
			if pod.Status.PodIP != ip {
				pod.Status.PodIP, pod.Status.PodIPs = ip, []corev1.PodIP{{IP: ip}}
				_, _ = r.Kube.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, pod, metav1.UpdateOptions{})
			}
			continue
		}
		if _, known := joined[pod.Name]; !known && pod.DeletionTimestamp == nil {
			resources := raydemand.Bundle{raydemand.CPU: raydemand.One}
			if gpus := pod.Spec.Containers[0].Resources.Limits["nvidia.com/gpu"]; gpus.Value() > 0 {
				resources[raydemand.GPU] = raydemand.One
			}
			joined[pod.Name] = r.head.AddNode(simray.Node{Instance: pod.Name, Group: pod.Labels["ray.io/group"], IP: pod.Status.PodIP, Resources: resources})
			r.note("pod %s joined Ray on %s", pod.Name, pod.Spec.NodeName)
		}
	}
	for name, id := range joined {
		if !there[name] {
			r.head.KillNode(id)
			delete(joined, name)
		}
	}
}

func (r *rayTeam) want(count int) {
	for range count {
		r.head.Submit(simray.Task{Bundle: raydemand.Bundle{raydemand.GPU: raydemand.One}})
	}
	r.note("%d tasks wait for a GPU each", count)
}

// status returns the output of `autoscaler status`.
func (r *rayTeam) status() (c apiv1.Cluster) {
	r.Helper()
	code, body, err := r.heliostat.Call(r.Context(), http.MethodGet, "/v1/namespaces/"+r.key.Namespace+"/rayclusters/"+r.key.Name, "")
	must(r, err)
	if code != http.StatusOK {
		return c
	}
	must(r, json.Unmarshal(body, &c))
	return c
}

func groupOf(c apiv1.Cluster, name string) apiv1.Group {
	i := slices.IndexFunc(c.Groups, func(g apiv1.Group) bool { return g.Name == name })
	if i < 0 {
		return apiv1.Group{}
	}
	return c.Groups[i]
}

// until waits until holds returns true for a status, and fails with the last status. It calls always with each one.
func (r *rayTeam) until(what string, holds func(apiv1.Cluster) bool, always func(apiv1.Cluster)) {
	r.Helper()
	var last apiv1.Cluster
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		last = r.status()
		if always != nil {
			always(last)
		}
		if holds(last) {
			r.note("%s", what)
			return
		}
	}
	text, _ := json.MarshalIndent(last, "", " ")
	r.Fatalf("not within %v: %s; the last status is %s", patience, what, text)
}

// eventually calls check until it returns no error.
func (k *karpenterLab) eventually(what string, check func(context.Context) error) {
	k.Helper()
	ctx, cancel := context.WithTimeout(k.Context(), patience)
	defer cancel()
	for err := check(ctx); err != nil; err = check(ctx) {
		select {
		case <-ctx.Done():
			k.Fatalf("not within %v: %s: %v", patience, what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	k.note("%s", what)
}

// decides waits until Heliostat has decided about the RayCluster so many times more.
func (r *rayTeam) decides(times int) {
	r.Helper()
	decided := time.Now()
	r.until("Heliostat has decided again", func(c apiv1.Cluster) bool {
		if c.LastCycle != nil && c.LastCycle.After(decided) {
			decided = *c.LastCycle
			times--
		}
		return times == 0
	}, nil)
}

// neverClosed fails the test if a group accepts no launches. It logs the reasons about the group whenever they change.
func (r *rayTeam) neverClosed(group string) func(apiv1.Cluster) {
	before := ""
	return func(c apiv1.Cluster) {
		g := groupOf(c, group)
		if said := fmt.Sprint(g.Closed, reasonsIn(g)); said != before {
			before = said
			r.note("%s has %d: %s %v", group, g.Current, g.Closed, reasonsIn(g))
		}
		if outOfStock(g) {
			r.Errorf("group %s is closed: %s", group, g.Closed)
		}
		if spare := groupOf(c, "z-spare"); spare.Desired > 0 {
			r.Errorf("%d pods of another group are launched while nodes are on their way", spare.Desired)
		}
	}
}

// outOfStock reports whether a group is closed because no node is available. Before its head responds, the group is
// closed for another reason.
func outOfStock(g apiv1.Group) bool {
	return strings.Contains(g.Closed, "no node is available") || strings.Contains(g.Closed, "no pod joined")
}

// reasonsIn returns the reasons about a group without times, because times change in each cycle.
func reasonsIn(g apiv1.Group) (texts []string) {
	for _, reason := range g.Reasons {
		text, _, _ := strings.Cut(reason.Message, ", the oldest for")
		if _, rest, found := strings.Cut(reason.Message, "; Karpenter"); found {
			text += "; Karpenter" + rest
		}
		texts = append(texts, text)
	}
	return texts
}

// gpuWorkers returns a group of workers with one GPU each, whose pods select nodes by the group's name.
func gpuWorkers(name string, most int64) rig.Group {
	return rig.Group{Name: name, Max: most, Devices: map[string]int64{"nvidia.com/gpu": 1}}
}

// twentySlowNodes covers assertions 1 and 3: no group counts as out of stock while NodeClaims are being launched, the
// status reports how many are pending, and Heliostat neither withdraws a launch nor launches twice.
func twentySlowNodes(k *karpenterLab) {
	k.nodePool("slow", devcluster.NodePool{Name: "slow", Class: "slow"})
	r := k.rayCluster("slow", gpuWorkers("slow", 40), gpuWorkers("z-spare", 40))
	r.want(20)
	open := r.neverClosed("slow")
	r.until("20 pods have a node on their way", func(c apiv1.Cluster) bool {
		return strings.Contains(fmt.Sprint(reasonsIn(groupOf(c, "slow"))), "Karpenter has launched nodes for 20 of them")
	}, open)
	r.launchedAlone(20)
	if slices.ContainsFunc(r.status().Findings, func(f raydemand.Finding) bool {
		return f.Code == "group-no-node" && strings.Contains(f.Field, "workerGroupSpecs[0]")
	}) {
		r.Error("group-no-node is found although nodes are on their way")
	}
	r.until("all 20 workers have joined", func(c apiv1.Cluster) bool { return groupOf(c, "slow").Ready == 20 }, func(c apiv1.Cluster) {
		open(c)
		if g := groupOf(c, "slow"); g.Desired > 20 || len(g.Name) > 0 && g.Desired < 20 {
			r.Errorf("the group wants %d workers, want 20 all the time", g.Desired)
		}
	})
	claims, err := r.NodeClaims(r.Context(), "slow")
	if err != nil || len(claims) != 20 {
		r.Fatalf("there are %d NodeClaims, %v; want 20", len(claims), err)
	}
}

// secondPoolInStock covers assertion 2: a stock-out of the first NodePool closes no group while the second has
// machines.
func secondPoolInStock(k *karpenterLab) {
	k.nodePool("two", devcluster.NodePool{Name: "first", Class: "fast", Weight: 50})
	k.nodePool("two", devcluster.NodePool{Name: "second", Class: "fast", Weight: 1})
	r := k.rayCluster("two", gpuWorkers("two", 4), gpuWorkers("z-spare", 4))
	r.want(1)
	r.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "two").Ready == 1 }, r.neverClosed("two"))
	r.failures("first", 1)
}

// failures returns the times at which Karpenter reported that it could not launch machines of a NodePool, the first one
// first. It fails the test if there are fewer than least.
func (k *karpenterLab) failures(pool string, least int) (at []time.Time) {
	k.Helper()
	events, err := k.Kube.CoreV1().Events(metav1.NamespaceDefault).List(k.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=NodeClaim,reason=InsufficientCapacityError"})
	must(k, err)
	for _, e := range events.Items {
		if strings.HasPrefix(e.InvolvedObject.Name, pool+"-") {
			at = append(at, e.FirstTimestamp.Time)
			k.note("%s %s", e.Reason, e.Message)
		}
	}
	if len(at) < least {
		k.Fatalf("%d launches of pool %s failed, want at least %d: nothing is tested", len(at), pool, least)
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// bothPoolsOut covers the other half of assertion 2: if both pools are out of stock, Heliostat closes the group as soon
// as Karpenter's next attempt has failed, and the next group serves the demand.
func bothPoolsOut(k *karpenterLab) {
	k.nodePool("dry", devcluster.NodePool{Name: "dry1", Class: "fast", Weight: 50})
	k.nodePool("dry", devcluster.NodePool{Name: "dry2", Class: "fast", Weight: 1})
	r := k.rayCluster("dry", gpuWorkers("dry", 4))
	r.want(1)
	var closed time.Time
	r.until("the group is closed", func(c apiv1.Cluster) bool {
		closed = time.Now()
		return outOfStock(groupOf(c, "dry"))
	}, nil)
	r.note("closed: %s", groupOf(r.status(), "dry").Closed)
	r.failures("dry1", 1)
	// The second failure alone may close the group: Karpenter decides when it tries again, after 3 to 20 s.
	r.closedAfter(closed, r.failures("dry2", 1)[0])
}

// closedAfter checks that a group was seen to be closed after Karpenter's failure. Event times are in whole seconds.
func (k *karpenterLab) closedAfter(closed, failed time.Time) {
	k.Helper()
	if closed.Before(failed) {
		k.Errorf("closed %v before the failure, want after it", failed.Sub(closed))
	}
	k.note("closed %v after the failure", closed.Sub(failed))
}

// onlyPoolOut: if the only NodePool that fits is out of stock, nothing else can be tried, so the group is closed at
// once.
func onlyPoolOut(k *karpenterLab) {
	k.nodePool("alone", devcluster.NodePool{Name: "alone", Class: "fast"})
	r := k.rayCluster("alone", gpuWorkers("alone", 4))
	r.want(1)
	var closed time.Time
	r.until("the group is closed", func(c apiv1.Cluster) bool {
		closed = time.Now()
		return outOfStock(groupOf(c, "alone"))
	}, nil)
	r.note("closed: %s", groupOf(r.status(), "alone").Closed)
	r.closedAfter(closed, r.failures("alone", 1)[0])
}

// capped waits until a named pool caps demand while a group has the given number of workers.
func (r *rayTeam) capped(group, pool string, workers int) {
	r.Helper()
	r.until(fmt.Sprintf("demand is capped by pool %s at %d workers", pool, workers), func(c apiv1.Cluster) bool {
		g := groupOf(c, group)
		return g.Desired == workers && g.Ready == workers && slices.ContainsFunc(c.Unmet, func(u apiv1.Unmet) bool {
			return strings.Contains(u.Reason.Message, "pool "+pool+" ")
		})
	}, func(c apiv1.Cluster) {
		if g := groupOf(c, group); g.Desired > workers {
			r.Errorf("group %s wants %d workers, its pool holds %d", group, g.Desired, workers)
		}
	})
}

// limitReached covers assertion 8: limits apply to pools with and without nodes.
func limitReached(k *karpenterLab) {
	k.nodePool("limited", devcluster.NodePool{Name: "limited", Class: "fast", Limits: map[string]string{"nvidia.com/gpu": "2"}})
	r := k.rayCluster("limited", gpuWorkers("limited", 9))
	r.bounded("limited", "limited", 2)
	r.want(5)
	r.capped("limited", "limited", 2)
	r.want(1)
	r.capped("limited", "limited", 2)
}

// bounded waits until Heliostat reports that a pool holds exactly most pods of a group. Heliostat reads NodePools every
// 15 s.
func (r *rayTeam) bounded(group, pool string, most int64) {
	r.Helper()
	path := "/v1/namespaces/" + r.key.Namespace + "/rayclusters/" + r.key.Name + "/snapshot"
	var body []byte
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		var err error
		if _, body, err = r.heliostat.Call(r.Context(), http.MethodGet, path, ""); err != nil {
			r.Fatal(err)
		}
		var snapshot planner.Snapshot
		if json.Unmarshal(body, &snapshot) != nil {
			continue
		}
		for _, g := range snapshot.Groups {
			if g.Name == group && slices.ContainsFunc(g.Pools, func(p planner.GroupPool) bool { return p.Name == pool && p.MaxPods != nil && *p.MaxPods == most }) {
				r.note("pool %s holds %d pods of group %s", pool, most, group)
				return
			}
		}
	}
	r.Fatalf("pool %s is not known to hold %d pods of group %s: %s", pool, most, group, body)
}

// staticPool checks that the replicas of a static NodePool set its capacity.
func staticPool(k *karpenterLab) {
	k.nodePool("static", devcluster.NodePool{Name: "static", Class: "fast", Replicas: 2, Limits: map[string]string{"nodes": "3"}})
	r := k.rayCluster("static", gpuWorkers("static", 9))
	r.bounded("static", "static", 2)
	r.want(3)
	r.capped("static", "static", 2)
}

// deletedNodePool checks that a deleted NodePool has no room for new pods, and that the status names it.
func deletedNodePool(k *karpenterLab) {
	k.nodePool("deleted", devcluster.NodePool{Name: "deleted", Class: "fast"})
	r := k.rayCluster("deleted", gpuWorkers("pool-deleted", 9))
	r.want(1)
	r.until("a worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "pool-deleted").Ready == 1 }, nil)
	policy := metav1.DeletePropagationOrphan
	if err := r.Dynamic.Resource(devcluster.NodePools).Delete(r.Context(), "deleted", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil && !apierrors.IsNotFound(err) {
		r.Fatal(err)
	}
	r.bounded("pool-deleted", "deleted", 1)
	r.want(2)
	r.capped("pool-deleted", "deleted", 1)
}

// deadNode checks that Heliostat counts a worker as lost when its Node object is deleted.
func deadNode(k *karpenterLab) {
	k.nodePool("dies", devcluster.NodePool{Name: "dies", Class: "fast"})
	r := k.rayCluster("dies", gpuWorkers("dies", 9))
	r.want(1)
	r.until("the worker has joined", func(c apiv1.Cluster) bool { return groupOf(c, "dies").Ready == 1 }, nil)
	pods, err := r.Kube.CoreV1().Pods(r.key.Namespace).List(r.Context(), metav1.ListOptions{LabelSelector: "ray.io/node-type=worker"})
	if err != nil || len(pods.Items) != 1 {
		r.Fatalf("%d workers, %v", len(pods.Items), err)
	}
	node := pods.Items[0].Spec.NodeName
	// A machine that fails does not shut down cleanly: nothing drains its node.
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if _, err := r.Kube.CoreV1().Nodes().Patch(r.Context(), node, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		r.Fatal(err)
	}
	must(r, r.Kube.CoreV1().Nodes().Delete(r.Context(), node, metav1.DeleteOptions{GracePeriodSeconds: new(int64)}))
	r.note("node %s is gone", node)
	r.until("the worker counts as lost", func(c apiv1.Cluster) bool { return groupOf(c, "dies").Ready == 0 }, nil)
}

// must ends the test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
