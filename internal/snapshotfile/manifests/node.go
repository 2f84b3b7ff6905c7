package manifests

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/internal/snapshotfile"
	"heliostat.dev/heliostat/pkg/nodepool/kube/decode"
	"heliostat.dev/heliostat/pkg/nodepool/kube/dra"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// places are the nodes and the declared shapes of pools in a snapshot file.
type places struct {
	reader sharing.Reader
	nodes  []landing.Node
	stock  *landing.Nodes
	// pods are nil if the file has none; nodes then count as empty.
	pods boundPods
	// devices are what the file says about ResourceSlices and ResourceClaims.
	devices dra.Objects
	// claiming: a pod on a node has ResourceClaims.
	claiming bool
	// known reports whether the file has nodes or shapes.
	known bool
	// at is when the snapshot was taken; zero if unknown.
	at time.Time
	// unused are the findings about pools without nodes.
	unused []raydemand.Finding
	// unreadable are the findings about objects: amounts that are missing, cards of which too little is known.
	unreadable []raydemand.Finding
}

func placesOf(reader sharing.Reader, doc snapshotfile.Document) (places, error) {
	p := places{reader: reader, known: doc.KubeNodes != nil, at: doc.TakenAt}
	var err error
	if err = p.readPods(doc.KubePods); err != nil {
		return p, err
	}
	if err = p.readDevices(doc); err != nil {
		return p, err
	}
	if err = p.readNodes(doc.KubeNodes); err != nil {
		return p, err
	}
	config, err := poolsIn(doc)
	if err != nil {
		return p, err
	}
	p.unused = poolsWithoutNodes(config, p.nodes)
	supply, shapes := p.devices.OnNewNodes(), config.Shapes(p.reader)
	for i := range shapes {
		supply.AddTo(&shapes[i])
	}
	p.stock = landing.NodesOf(p.nodes, landing.Pools{Rooms: landing.Rooms(p.nodes, config, nil), Shapes: shapes,
		Complete: config.Complete, PoolLabel: p.reader.PoolLabel})
	p.nodes = slices.Concat(p.nodes, shapes)
	p.known = p.known || len(p.nodes) > 0
	return p, nil
}

// readNodes reads kubeNodes, with what the pods and devices that were read before take of them.
func (p *places) readNodes(raw json.RawMessage) error {
	items, err := objectsOf(raw, "kubeNodes", "Node")
	if err != nil {
		return err
	}
	devices := p.devices.GPUs()
	supplies, elsewhere := p.devices.ByNode()
	for i, item := range items {
		object, node, err := decode.Read(p.reader, item)
		if err != nil {
			return fmt.Errorf("kubeNodes[%d]: %w", i, err)
		}
		p.unreadable = append(p.unreadable, unreadableAmounts(object)...)
		assumePods(&node, item)
		object.Devices = devices[node.Name]
		read := p.reader.Read(object)
		node.GPUs = &read
		if p.pods != nil || len(object.Devices) > 0 {
			node.Use = decode.Use(p.reader, object, p.pods[node.Name])
		}
		supply, known := supplies[node.Name]
		if !known {
			supply = elsewhere
		}
		supply.AddTo(&node)
		p.unreadable = append(p.unreadable, nodeProblems(node)...)
		p.nodes = append(p.nodes, node)
	}
	landing.LeaveOutBadGPUs(p.nodes)
	return nil
}

// nodeProblems reports cards of which too little is known.
func nodeProblems(node landing.Node) (list []raydemand.Finding) {
	problems := slices.Clone(node.GPUs.Problems)
	if node.Use != nil && node.Use.Unrecorded != nil {
		problems = append(problems, *node.Use.Unrecorded)
	}
	for _, problem := range problems {
		if f, matters := landing.NodeProblem(node.Name, problem); matters {
			list = append(list, f)
		}
	}
	return list
}

func unreadableAmounts(node sharing.NodeObject) (list []raydemand.Finding) {
	for _, text := range node.Unreadable {
		list = append(list, raydemand.Finding{Code: string(sharing.AmountUnreadable), Severity: raydemand.Error,
			Object: "Node " + node.Name, Field: "status", Seen: text,
			Why: "the amount cannot be read, so the plan treats it as missing, and pods that request it do not fit " +
				"the node",
			Fix: "correct the amount"})
	}
	return list
}

// mostPods is how many pods a kubelet runs unless it is configured otherwise (KubeletConfiguration, maxPods).
const mostPods = 110

// assumePods bounds the pods on a node of an excerpt that lacks their number. Every kubelet reports it.
func assumePods(node *landing.Node, object map[string]any) {
	amounts, _, _ := unstructured.NestedFieldNoCopy(object, "status", "allocatable")
	listed, _ := amounts.(map[string]any)
	if _, said := listed["pods"]; said || len(listed) == 0 {
		return
	}
	node.Allocatable["pods"] = raydemand.Whole(mostPods)
}
