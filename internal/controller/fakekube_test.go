package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"heliostat.dev/heliostat/internal/addon/giveback"
	"heliostat.dev/heliostat/pkg/nodepool"
	reservation "heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// fakeKube keeps one RayCluster and carries patches out, guarded as the real adapter does.
type fakeKube struct {
	now     func() time.Time
	cluster nodepool.Cluster
	// cached, when set, is what the cache still shows; fresh what a fresh read shows.
	cached, fresh *nodepool.Cluster
	nextErr       error                      // fails the next of them
	applyErr      error                      // fails every patch
	refuses       func(nodepool.Target) bool // of a patch fails all of it
	lostAnswer    error                      // answers each write that is stored
	clusterErr    error
	freshErr      error
	freshReads    int
	onFresh       func() // runs during each fresh read
	recording     func() // runs during each Event
	owners        func() // runs while the owners are read
	writing       func() // runs during each write
	deposed       bool   // another process leads
	changes       []nodepool.Change
	reading       func()    // runs before each read of the caches
	other         *fakeKube // has one more RayCluster
	syncErr       error     // fails every write of num-gpus
	synced        []nodepool.NumGPUsChange
	events        []string
	guardErr      error  // fails every write of a guard
	unguardable   string // the pod of which each write of a guard fails
	guarded       []nodepool.GuardChange
	provisionErr  error // fails every write of a ProvisioningRequest
	provisions    []nodepool.ProvisioningChange
	idleErr       error // fails every end of an idle RayCluster
	ended         []nodepool.IdleChange
	buffers       []nodepool.BufferChange
	desk          *giveback.Desk
	beginErrs     []error // what the next reservations meet
	enqueued      func()  // runs when a cycle is requested
}

// KeepNodes shows what is written at the next reading, as the watch does.
func (k *fakeKube) KeepNodes(_ context.Context, change nodepool.BufferChange) error {
	if err := k.begin(); err != nil {
		return err
	}
	k.buffers = append(k.buffers, change)
	known := *k.cluster.Buffers
	known.List = slices.DeleteFunc(slices.Clone(known.List),
		func(b nodepool.Buffer) bool { return b.Name == change.Buffer.Name })
	if !change.Remove {
		known.List = append(known.List, change.Buffer)
	}
	k.cluster.Buffers = &known
	return k.lostAnswer
}

// BeginGiveBack shows what is written at the next reading.
func (k *fakeKube) BeginGiveBack(_ context.Context, _ nodepool.Cluster, r *reservation.Reservation) error {
	if err := k.begin(); err != nil {
		return err
	}
	if len(k.beginErrs) > 0 {
		err := k.beginErrs[0]
		k.beginErrs = k.beginErrs[1:]
		return err
	}
	k.cluster.GiveBack = r
	if r.Taker != "" {
		k.cluster.Reclaimed = r.Takings(k.cluster.Reclaimed)
	}
	return k.lostAnswer
}

// begin begins a write.
func (k *fakeKube) begin() error {
	if k.writing != nil {
		k.writing()
	}
	err := k.nextErr
	k.nextErr = nil
	return err
}

// EndGiveBack ends the reservation that the reader knew, or without a reading any.
func (k *fakeKube) EndGiveBack(_ context.Context, of nodepool.Cluster) error {
	if err := k.begin(); err != nil {
		return err
	}
	if of.UID != "" && k.cluster.GiveBack != of.GiveBackOver {
		return nodepool.ErrConflict
	}
	k.cluster.GiveBack = nil
	return k.lostAnswer
}

func (k *fakeKube) Enqueue(nodepool.ClusterKey) {
	if k.enqueued != nil {
		k.enqueued()
	}
}

func (k *fakeKube) Cluster(ctx context.Context, key nodepool.ClusterKey) (nodepool.Cluster, error) {
	if k.other != nil && key == k.other.cluster.Key {
		return k.other.Cluster(ctx, key)
	}
	if k.reading != nil {
		k.reading()
	}
	if k.cached != nil {
		return clone(*k.cached), k.clusterErr
	}
	return clone(k.cluster), k.clusterErr
}

func (k *fakeKube) Fresh(context.Context, nodepool.ClusterKey) (nodepool.Cluster, error) {
	k.freshReads++
	if k.onFresh != nil {
		k.onFresh()
	}
	if k.freshErr != nil {
		return nodepool.Cluster{}, k.freshErr
	}
	if k.fresh != nil {
		return clone(*k.fresh), nil
	}
	return clone(k.cluster), nil
}

func (k *fakeKube) Apply(_ context.Context, change nodepool.Change) (int64, error) {
	if k.writing != nil {
		k.writing()
	}
	if k.owners != nil && change.OwnersReadSince.IsZero() {
		k.owners()
	}
	if !change.ValidUntil.IsZero() && k.now().After(change.ValidUntil) {
		return 0, nodepool.ErrOutdated
	}
	if err := k.nextErr; err != nil {
		k.nextErr = nil
		return 0, err
	}
	if k.applyErr != nil {
		return 0, k.applyErr
	}
	if k.refuses != nil && slices.ContainsFunc(change.Targets, k.refuses) {
		return 0, errors.New("refused by a policy")
	}
	if k.deposed {
		return 0, nodepool.ErrNotLeading
	}
	k.changes = append(k.changes, change)
	names := slices.ContainsFunc(change.Targets, func(t nodepool.Target) bool { return len(t.WorkersToDelete) > 0 })
	if names && change.Generation != k.cluster.Generation {
		return 0, nodepool.ErrConflict
	}
	for _, t := range change.Targets {
		g := &k.cluster.Groups[t.Index]
		if g.Name != t.Group || g.Replicas != t.From || change.UID != k.cluster.UID {
			return 0, nodepool.ErrConflict
		}
		g.Replicas = t.Replicas
		if t.WorkersToDelete != nil {
			g.WorkersToDelete = slices.Clone(t.WorkersToDelete)
		}
	}
	k.cluster.Generation++
	k.cluster.ScaledBy = nodepool.FieldManager
	return k.cluster.Generation, k.lostAnswer
}

// SyncNumGPUs writes the numbers as the operator would pass them on: a pod made later announces them.
func (k *fakeKube) SyncNumGPUs(_ context.Context, change nodepool.NumGPUsChange) (int64, error) {
	if k.syncErr != nil {
		return 0, k.syncErr
	}
	if err := k.begin(); err != nil {
		return 0, err
	}
	if change.UID != k.cluster.UID || change.Generation != k.cluster.Generation {
		return 0, nodepool.ErrConflict
	}
	k.synced = append(k.synced, change)
	for _, t := range change.Targets {
		g := &k.cluster.Groups[t.Index]
		g.Resources = g.Resources.Clone()
		g.Resources[raydemand.GPU] = t.GPUs
		g.GPUs.Declared, g.GPUs.Derived = &t.GPUs, &t.GPUs
	}
	k.cluster.Generation++
	return k.cluster.Generation, k.lostAnswer
}

// Guard annotates the pod as the API server would: a change from an old version is a conflict.
func (k *fakeKube) Guard(_ context.Context, change nodepool.GuardChange) error {
	if k.guardErr != nil {
		return k.guardErr
	}
	if change.Pod == k.unguardable {
		return fmt.Errorf("guarding pod %s: an admission policy denied the request", change.Pod)
	}
	if err := k.begin(); err != nil {
		return err
	}
	k.guarded = append(k.guarded, change)
	at := &k.cluster.Head.Guard
	uid := k.cluster.Head.PodUID
	if i := slices.IndexFunc(k.cluster.Workers, func(w nodepool.Worker) bool { return w.Pod == change.Pod }); i >= 0 {
		at, uid = &k.cluster.Workers[i].Guard, k.cluster.Workers[i].UID
	}
	if uid != change.UID || at.Version != change.Read.Version {
		return nodepool.ErrConflict
	}
	for _, mark := range []*nodepool.GuardMark{&at.DoNotDisrupt, &at.SafeToEvict} {
		switch {
		case change.Keep && *mark == nodepool.Unmarked:
			*mark = nodepool.MarkedByUs
		case !change.Keep && *mark == nodepool.MarkedByUs:
			*mark = nodepool.Unmarked
		}
	}
	at.Ours, at.Version = change.Keep, at.Version+"x"
	return k.lostAnswer
}

// Provision keeps requests and annotations as the API server would.
// EndIdle changes the RayCluster if it is still the version that was read.
func (k *fakeKube) EndIdle(_ context.Context, change nodepool.IdleChange) error {
	if err := k.begin(); err != nil {
		return err
	}
	switch c := &k.cluster; {
	case k.idleErr != nil:
		return k.idleErr
	case change.UID != c.UID || change.Generation != c.Generation || change.ResourceVersion != c.ResourceVersion:
		return nodepool.ErrConflict
	default:
		c.Suspended, c.IdleSince = !change.Resume, change.Since
	}
	k.ended = append(k.ended, change)
	k.cluster.Generation++
	return k.lostAnswer
}

func (k *fakeKube) Provision(_ context.Context, change nodepool.ProvisioningChange) error {
	if k.provisionErr != nil {
		return k.provisionErr
	}
	if err := k.begin(); err != nil {
		return err
	}
	k.provisions = append(k.provisions, change)
	known := nodepool.Provisioning{Requests: slices.Clone(k.cluster.Provisioning.Requests)}
	same := func(r nodepool.ProvisioningRequest) bool { return r.Name == change.Request.Name }
	switch at := slices.IndexFunc(known.Requests, same); {
	case change.Kind == nodepool.AskCapacity && at < 0:
		made := change.Request
		made.State, made.CreatedAt = nodepool.CapacityAsked, k.now()
		known.Requests = append(known.Requests, made)
	case change.Kind == nodepool.ReleaseCapacity && at >= 0:
		known.Requests = slices.Delete(known.Requests, at, at+1)
	}
	k.cluster.Provisioning = &known
	for i := range k.cluster.Workers {
		w := &k.cluster.Workers[i]
		switch {
		case w.Pod != change.Pod.Pod:
		case w.Guard.Version != change.Pod.Guard.Version:
			return nodepool.ErrConflict
		case change.Kind == nodepool.ConsumeCapacity:
			w.Consumes, w.Guard.Version = change.Request.Name, w.Guard.Version+"p"
		case change.Kind == nodepool.ForgetCapacity:
			w.Consumes, w.Guard.Version = "", w.Guard.Version+"p"
		}
	}
	return k.lostAnswer
}

func (k *fakeKube) MayWrite(nodepool.ClusterKey) bool { return !k.deposed }

func (k *fakeKube) Event(_ nodepool.Cluster, _ bool, reason, _ string) {
	k.events = append(k.events, reason)
	if k.recording != nil {
		k.recording()
	}
}

func (k *fakeKube) OwnerEvent(_ nodepool.Cluster, _ bool, reason, _ string) {
	k.events = append(k.events, "owner "+reason)
}

func (k *fakeKube) emitted(reason string) int {
	count := 0
	for _, e := range k.events {
		if e == reason {
			count++
		}
	}
	return count
}

func clone(c nodepool.Cluster) nodepool.Cluster {
	c.Groups, c.Workers = slices.Clone(c.Groups), slices.Clone(c.Workers)
	for i := range c.Groups {
		c.Groups[i].WorkersToDelete = slices.Clone(c.Groups[i].WorkersToDelete)
	}
	c.MarkGivenBack()
	return c
}
