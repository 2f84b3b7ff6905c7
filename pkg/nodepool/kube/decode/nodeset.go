package decode

import (
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// NodeSet is a set of nodes with the objects that say which of their GPUs are in use and how far their pools can grow.
// The zero value is empty.
type NodeSet struct {
	nodes []sharing.NodeObject
	// named are the names of the nodes.
	named map[string]bool
	// pods are by node; nil until pods are read, because a list without pods is not a cluster without pods.
	pods map[string][]sharing.Pod
	// unreadable are nodes with a pod that cannot be read, so that its requests are unknown.
	unreadable map[string]bool
	// slices are ResourceSlices by name, and held the devices of ResourceClaims, nil until these are read.
	slices map[string]*resourcev1.ResourceSlice
	held   map[types.NamespacedName][]resourcev1.DeviceRequestAllocationResult
	// Ceilings are those of the Cluster Autoscaler's status and of Karpenter's NodePools.
	Ceilings []landing.Ceiling
	// Notes say what could not be read and is therefore unknown.
	Notes []string
}

// Nodes returns the nodes, each with its pods and devices as far as they were read.
func (s *NodeSet) Nodes() []sharing.NodeObject {
	nodes, devices := make([]sharing.NodeObject, len(s.nodes)), GPUsByNode(s.slices, s.held)
	for i, node := range s.nodes {
		if s.pods != nil && !s.unreadable[node.Name] {
			node.Pods = append([]sharing.Pod{}, s.pods[node.Name]...)
		}
		node.Devices = devices[node.Name]
		nodes[i] = node
	}
	return nodes
}

// Read adds objects as `kubectl get -o yaml` or `-o json` prints them: documents of kind Node, Pod, ResourceSlice,
// ResourceClaim, NodePool and the Cluster Autoscaler's ConfigMap, or lists of objects. It ignores objects of other
// kinds. It returns an error for a document that is not an object, or an object of those kinds that cannot be
// read. A pod, status or NodePool that cannot be read is a note.
func (s *NodeSet) Read(in io.Reader) error {
	objects, places, err := ReadObjects(in)
	if err != nil {
		return err
	}
	for i, object := range objects {
		if err := s.Add(object); err != nil {
			return fmt.Errorf("reading document %d: %s%w", places[i].Document, places[i].Item, err)
		}
	}
	return nil
}

// Add adds one object, as Read does.
func (s *NodeSet) Add(object map[string]any) error {
	at := unstructured.Unstructured{Object: object}
	group, _, _ := strings.Cut(at.GetAPIVersion(), "/")
	switch kind := at.GetKind(); {
	case kind == "Node":
		return s.addNode(object)
	case kind == "Pod":
		s.readPod(object)
	case kind == "ConfigMap":
		s.note(decodeInto(object, "configmap", s.addStatus))
	case kind == "ResourceSlice" && HasDevices(at.GetAPIVersion()):
		return decodeInto(object, "resourceslice", s.addSlice)
	case kind == "ResourceClaim" && HasDevices(at.GetAPIVersion()):
		return decodeInto(object, "resourceclaim", s.addClaim)
	case kind == "NodePool" && group == "karpenter.sh":
		ceiling, err := ReadNodePool(object)
		if s.note(err); err == nil {
			s.Ceilings = append(s.Ceilings, ceiling)
		}
	}
	return nil
}

// note adds a note. The nodes are known without it.
func (s *NodeSet) note(err error) {
	if err != nil {
		s.Notes = append(s.Notes, err.Error())
	}
}

// HasDevices reports whether devices are in the place that Heliostat reads: v1 and v1beta2 have the same form, while
// v1beta1 had a device's attributes elsewhere.
func HasDevices(apiVersion string) bool {
	return apiVersion == resourcev1.SchemeGroupVersion.String() || apiVersion == "resource.k8s.io/v1beta2"
}

func decodeInto[T any](fields map[string]any, kind string, add func(*T) error) error {
	object, err := fromJSON[T](fields)
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, nameIn(fields), err)
	}
	return add(object)
}

func (s *NodeSet) addNode(fields map[string]any) error {
	node, _, err := Read(sharing.Reader{}, fields)
	if err != nil {
		return fmt.Errorf("node %s: %w", nameIn(fields), err)
	}
	if node.Name != "" && s.named[node.Name] {
		s.note(fmt.Errorf("node %s is listed more than once; the first counts", node.Name))
		return nil
	}
	if s.named == nil {
		s.named = map[string]bool{}
	}
	s.named[node.Name] = true
	s.nodes = append(s.nodes, node)
	return nil
}

// readPod adds a pod that can be read completely. If one cannot, nobody knows what it holds, so what is free on its
// node is unknown too.
func (s *NodeSet) readPod(fields map[string]any) {
	pod, err := ReadPod(fields)
	if err == nil {
		s.addPod(pod)
		return
	}
	node, _, _ := unstructured.NestedString(fields, "spec", "nodeName")
	s.note(fmt.Errorf("%w; what is free on its node is unknown", err))
	if s.unreadable == nil {
		s.unreadable = map[string]bool{}
	}
	s.unreadable[node] = true
}

// KnowPods notes that pods are read, even if there are none.
func (s *NodeSet) KnowPods() { s.pods = map[string][]sharing.Pod{} }

// DropPods forgets all pods. With a part of them, the GPUs of the others would look free.
func (s *NodeSet) DropPods() { s.pods = nil }

// addPod adds what a pod holds. Completed pods hold nothing.
func (s *NodeSet) addPod(pod *corev1.Pod) {
	if s.pods == nil {
		s.KnowPods()
	}
	if bound, takes := Bound(pod); takes && len(bound.Requests) > 0 {
		same := func(p sharing.Pod) bool { return p.Namespace == pod.Namespace && p.Name == pod.Name && p.Name != "" }
		if !slices.ContainsFunc(s.pods[bound.Node], same) {
			s.pods[bound.Node] = append(s.pods[bound.Node], bound.Pod)
		}
	}
}

// KnowDevices notes that ResourceSlices and ResourceClaims are read, even if there are none.
func (s *NodeSet) KnowDevices() {
	s.held = map[types.NamespacedName][]resourcev1.DeviceRequestAllocationResult{}
}

// DropDevices forgets all devices. Without all ResourceClaims it is not known which are free.
func (s *NodeSet) DropDevices() { s.slices, s.held = nil, nil }

func (s *NodeSet) addSlice(slice *resourcev1.ResourceSlice) error {
	if s.slices == nil {
		s.slices = map[string]*resourcev1.ResourceSlice{}
	}
	s.slices[slice.Name] = slice
	return nil
}

func (s *NodeSet) addClaim(claim *resourcev1.ResourceClaim) error {
	if s.held == nil {
		s.KnowDevices()
	}
	s.held[types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}] = DevicesOf(claim)
	return nil
}

// addStatus reads the Cluster Autoscaler's ConfigMap, and ignores others.
func (s *NodeSet) addStatus(config *corev1.ConfigMap) error {
	if config.Name != StatusConfigMap || config.Data["status"] == "" {
		return nil
	}
	ceilings, err := AutoscalerCeilings(config.Data["status"])
	if err != nil {
		return err
	}
	s.Ceilings = append(s.Ceilings, ceilings...)
	return nil
}
