package nodeobject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
)

// NodeSet is a set of nodes with the objects that say which of their GPUs are in use and how far their pools can grow.
// The zero value is empty.
type NodeSet struct {
	nodes []sharing.NodeObject
	// pods are by node; nil until pods are read, because a list without pods is not a cluster without pods.
	pods map[string][]sharing.Pod
	// unreadable are nodes with a pod that cannot be read, so that its requests are unknown.
	unreadable map[string]bool
	devices    Devices
	// Ceilings are those of the Cluster Autoscaler's status and of Karpenter's NodePools.
	Ceilings []landing.Ceiling
	// Claims are Karpenter's NodeClaims; nil if there are none or they are forbidden.
	Claims []landing.NodeClaim
	// Notes say what could not be read and is therefore unknown.
	Notes []string
}

// Nodes returns the nodes, each with its pods and devices as far as they were read.
func (s *NodeSet) Nodes() []sharing.NodeObject {
	nodes, devices := make([]sharing.NodeObject, len(s.nodes)), s.devices.ByNode()
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
// ResourceClaim, NodePool, NodeClaim and the Cluster Autoscaler's ConfigMap, or lists of objects. It ignores objects of
// other kinds. It returns an error for a document that is not an object, or an object of those kinds that cannot be
// read. A pod, status or NodePool that cannot be read is a note.
func (s *NodeSet) Read(in io.Reader) error {
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for number := 1; ; number++ {
		var document json.RawMessage
		switch err := decoder.Decode(&document); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("reading document %d: %w", number, err)
		}
		if len(document) == 0 || bytes.Equal(document, []byte("null")) {
			continue
		}
		if err := s.add(document); err != nil {
			return fmt.Errorf("reading document %d: %w", number, err)
		}
	}
}

// add adds one object, or the items of a list.
func (s *NodeSet) add(document json.RawMessage) error {
	var head struct {
		Kind       string            `json:"kind"`
		APIVersion string            `json:"apiVersion"`
		Items      []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(document, &head); err != nil {
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &kind) && kind.Field == "":
			return fmt.Errorf("want a Kubernetes object: the document is of type %s", kind.Value)
		case errors.As(err, &kind):
			return fmt.Errorf("want a Kubernetes object: its %s is of type %s", kind.Field, kind.Value)
		}
		return fmt.Errorf("want a Kubernetes object: %w", err)
	}
	group, _, _ := strings.Cut(head.APIVersion, "/")
	switch {
	case head.Kind == "Node":
		return s.addNode(document)
	case head.Kind == "Pod":
		return s.readPod(document)
	case head.Kind == "ConfigMap":
		s.note(decodeInto(document, "configmap", s.addStatus))
		return nil
	case head.Kind == "ResourceSlice" && HasDevices(head.APIVersion):
		return decodeInto(document, "resourceslice", put(s.devices.PutSlice))
	case head.Kind == "ResourceClaim" && HasDevices(head.APIVersion):
		return decodeInto(document, "resourceclaim", put(s.devices.PutClaim))
	case head.Kind == "NodePool" && group == "karpenter.sh":
		s.note(decodeInto(document, "nodepool", s.addNodePool))
		return nil
	case head.Kind == "NodeClaim" && group == "karpenter.sh":
		s.note(decodeInto(document, "nodeclaim", func(claim *claimObject) error { s.addNodeClaim(claim); return nil }))
		return nil
	case strings.HasSuffix(head.Kind, "List"):
		for i, item := range head.Items {
			if err := s.add(item); err != nil {
				return fmt.Errorf("items[%d]: %w", i, err)
			}
		}
		return nil
	case head.Kind == "":
		return errors.New("kind is missing: want a Kubernetes object")
	}
	return nil
}

// put turns a function that keeps an object into one for decodeInto.
func put[T any](keep func(T) (differs bool)) func(T) error {
	return func(object T) error { keep(object); return nil }
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

func decodeInto[T any](document json.RawMessage, kind string, add func(*T) error) error {
	object := new(T)
	if err := json.Unmarshal(document, object); err != nil {
		return fmt.Errorf("%s %s: %w", kind, nameIn(document), err)
	}
	return add(object)
}

func (s *NodeSet) addNode(document json.RawMessage) error {
	var fields map[string]any
	err := json.Unmarshal(document, &fields)
	if err == nil {
		var node sharing.NodeObject
		if node, _, err = Read(fields); err == nil {
			s.nodes = append(s.nodes, node)
			return nil
		}
	}
	return fmt.Errorf("node %s: %w", nameIn(document), err)
}

// readPod adds a pod that can be read completely. If one cannot, nobody knows what it holds, so what is free on its
// node is unknown too.
func (s *NodeSet) readPod(document json.RawMessage) error {
	var fields map[string]any
	if err := json.Unmarshal(document, &fields); err != nil {
		return fmt.Errorf("pod %s: %w", nameIn(document), err)
	}
	pod, unreadable, err := ReadPod(fields)
	if err == nil && len(unreadable) == 0 {
		s.addPod(pod)
		return nil
	}
	if err != nil {
		unreadable = []string{err.Error()}
	}
	node, _, _ := unstructured.NestedString(fields, "spec", "nodeName")
	s.note(
		fmt.Errorf("pod %s: %s; what is free on its node is unknown", nameIn(document), strings.Join(unreadable, "; ")),
	)
	if s.unreadable == nil {
		s.unreadable = map[string]bool{}
	}
	s.unreadable[node] = true
	return nil
}

// AddNode adds a node as the API server returns it.
func (s *NodeSet) AddNode(node *corev1.Node) { s.nodes = append(s.nodes, ForGPUs(node)) }

// AddPods adds what pods hold, and notes that pods were read even if there are none.
func (s *NodeSet) AddPods(list []corev1.Pod) {
	if s.pods == nil {
		s.pods = map[string][]sharing.Pod{}
	}
	for i := range list {
		s.addPod(&list[i])
	}
}

// DropPods forgets all pods. With a part of them, the GPUs of the others would look free.
func (s *NodeSet) DropPods() { s.pods = nil }

// addPod adds what a pod holds. Completed pods hold nothing.
func (s *NodeSet) addPod(pod *corev1.Pod) {
	if s.pods == nil {
		s.pods = map[string][]sharing.Pod{}
	}
	if bound, takes := Bound(pod); takes && len(bound.Requests) > 0 {
		s.pods[bound.Node] = append(s.pods[bound.Node], bound.Pod)
	}
}

// AddResourceSlices adds the devices that ResourceSlices offer.
func (s *NodeSet) AddResourceSlices(list []resourcev1.ResourceSlice) {
	for i := range list {
		s.devices.PutSlice(&list[i])
	}
}

// AddResourceClaims adds which devices are allocated, and notes that claims were read even if there are none.
func (s *NodeSet) AddResourceClaims(list []resourcev1.ResourceClaim) {
	s.devices.KnowClaims()
	for i := range list {
		s.devices.PutClaim(&list[i])
	}
}

// DropDevices forgets all devices. Without all ResourceClaims it is not known which are free.
func (s *NodeSet) DropDevices() { s.devices = Devices{} }

// AddStatus adds the ceilings that the Cluster Autoscaler's ConfigMap states. A status that cannot be read is a note.
func (s *NodeSet) AddStatus(config *corev1.ConfigMap) { s.note(s.addStatus(config)) }

// AddNodePool adds the ceiling that a NodePool sets. A NodePool that cannot be read is a note.
func (s *NodeSet) AddNodePool(object *unstructured.Unstructured) {
	document, err := json.Marshal(object.Object)
	if err == nil {
		err = decodeInto(document, "nodepool", s.addNodePool)
	}
	s.note(err)
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

func (s *NodeSet) addNodeClaim(claim *claimObject) { s.Claims = append(s.Claims, claim.claim()) }

func (s *NodeSet) addNodePool(pool *NodePool) error {
	ceiling, err := CeilingOf(*pool)
	if err == nil {
		ceiling.Template = pool.Template()
		s.Ceilings = append(s.Ceilings, ceiling)
	}
	return err
}
