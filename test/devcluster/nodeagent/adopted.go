package nodeagent

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// ReadyAfterAnnotation of an adopted Node is the time from its creation until it is Ready, such as 5s: between the
// registration of a kubelet and that of its device plugins.
const ReadyAfterAnnotation = "devcluster.heliostat.dev/ready-after"

// adoption runs the pods of Nodes that others create. It is the machine of each: it starts with the Node object, and
// when the object is deleted, the machine is gone with all its processes. It changes only what a kubelet reports, and
// leaves labels, annotations, taints and finalizers to others. Only the handlers of one informer call it, one at a
// time.
type adoption struct {
	agent    *Agent
	provider string                           // the beginning of spec.providerID
	running  context.Context                  // canceled when the agent stops
	turnOff  map[types.UID]context.CancelFunc // of the machines that are on, by the UID of the Node
}

// startAdopting begins to watch Nodes. It does not wait for any.
func (a *Agent) startAdopting(running context.Context) error {
	ad := &adoption{
		agent:    a,
		provider: a.cfg.AdoptProvider,
		running:  running,
		turnOff:  map[types.UID]context.CancelFunc{},
	}
	informer := informers.NewSharedInformerFactory(a.client, 0).Core().V1().Nodes().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) { ad.see(object.(*corev1.Node)) },
		UpdateFunc: func(before, now any) {
			if before.(*corev1.Node).UID != now.(*corev1.Node).UID {
				ad.lose(before)
			}
			ad.see(now.(*corev1.Node))
		},
		DeleteFunc: ad.lose,
	})
	if err != nil {
		return fmt.Errorf("watching nodes: %w", err)
	}
	a.tasks.Go(func() { informer.RunWithContext(running) })
	return nil
}

// see starts the machine of a Node, unless it is on.
func (ad *adoption) see(object *corev1.Node) {
	if !strings.HasPrefix(object.Spec.ProviderID, ad.provider) || ad.turnOff[object.UID] != nil {
		return
	}
	on, turnOff := context.WithCancel(ad.running)
	ad.turnOff[object.UID] = turnOff
	ad.agent.tasks.Go(func() { ad.agent.runMachine(on, object) })
}

// lose turns the machine of a deleted Node off.
func (ad *adoption) lose(object any) {
	if unknown, is := object.(cache.DeletedFinalStateUnknown); is {
		object = unknown.Obj
	}
	if node, is := object.(*corev1.Node); is && ad.turnOff[node.UID] != nil {
		ad.turnOff[node.UID]()
		delete(ad.turnOff, node.UID)
	}
}

// runMachine runs the pods of a Node, from the end of its delay until on is canceled. Then it kills all processes at
// once. It writes nothing to the API server, because a machine without power writes nothing: the pods are there until
// another controller deletes them.
func (a *Agent) runMachine(on context.Context, object *corev1.Node) {
	log := a.log.With("node", object.Name)
	delay, err := readyDelay(object)
	if err != nil {
		log.Warn("the node is ready at once", "err", err)
	}
	select {
	case <-on.Done():
		return
	case <-time.After(delay):
	}
	// The provider sets as capacity only what pods have asked for so far.
	n, err := newNode(on, a, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: object.Name},
		Status:     corev1.NodeStatus{Capacity: object.Status.Allocatable, Allocatable: object.Status.Allocatable},
	})
	if err != nil {
		log.Error("starting the node's machine failed", "err", err)
		return
	}
	a.addNode(n)
	log.Info("the node's machine is on")
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		n.run(on)
	}()
	<-on.Done()
	n.provider.killAll()
	<-ended
	n.provider.killAll() // a controller that was about to end may have started another pod
	a.removeNode(n)
	a.pods.Addresses.Release(n.ip)
	log.Info("the node's machine is off")
}

// readyDelay returns how long the machine of a Node still takes to be Ready.
func readyDelay(object *corev1.Node) (time.Duration, error) {
	text := object.Annotations[ReadyAfterAnnotation]
	if text == "" {
		return 0, nil
	}
	delay, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %w", ReadyAfterAnnotation, err)
	}
	return time.Until(object.CreationTimestamp.Add(delay)), nil
}
