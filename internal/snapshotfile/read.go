// Package snapshotfile reads, checks and bounds the JSON form of snapshots: the files of `autoscaler plan`, the
// policies, demands and changes that its flags take, and the snapshots that a live cluster exports. Errors name the
// file, the field, the value, and what would be right.
//
// The package plans nothing, and imports only the planner's model.
package snapshotfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/nodepool/sharing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxSnapshotBytes bounds the size of a snapshot file. A cluster of 10,000 nodes takes about 5 MiB.
const MaxSnapshotBytes = 64 << 20

// mostManifest bounds a RayCluster in bytes; etcd stores objects of up to 1.5 MiB.
const mostManifest = 4 << 20

// Document is a snapshot file. A RayCluster manifest, which the caller decodes, may replace its groups.
type Document struct {
	model.Snapshot
	// RayCluster is the manifest in the file, or nil if the file has groups.
	RayCluster json.RawMessage
	// TopologyLabels are the labels of Kubernetes nodes that Ray nodes have as well, beside those of the command line.
	TopologyLabels []sharing.TopologyLabel
	// KubeNodes are the Node objects for the manifest, KubePods the Pod objects on them, and Pools the configuration of
	// pools. Each may be nil.
	KubeNodes, KubePods, Pools json.RawMessage
	// KubeResourceSlices are the devices on the nodes, and KubeResourceClaims say which of them are allocated. Each may
	// be nil.
	KubeResourceSlices, KubeResourceClaims json.RawMessage
	// KubeDeviceClasses say which resources the devices stand for, and KubeResourceClaimTemplates what a claim of a pod
	// requests. KubeDeviceTaintRules taint devices. Each may be nil.
	KubeDeviceClasses, KubeResourceClaimTemplates, KubeDeviceTaintRules json.RawMessage
	// PoolsComplete says that no other pool can get a node.
	PoolsComplete bool
	// Findings report unknown keys.
	Findings []raydemand.Finding
}

// ReadSnapshot reads a snapshot file. If a value is invalid, the error is an *InputError with the file, the field, the
// value and what would be right. Unknown keys are ignored; ReadDocument reports them.
func ReadSnapshot(r io.Reader, name string) (model.Snapshot, error) {
	doc, err := ReadDocument(r, name)
	if err != nil {
		return model.Snapshot{}, err
	}
	if doc.RayCluster != nil {
		return model.Snapshot{}, &InputError{name, "rayCluster", "a manifest", "groups"}
	}
	return doc.Snapshot, nil
}

// ReadDocument reads a snapshot file that may have a RayCluster manifest in place of groups. Errors are those of
// ReadSnapshot.
func ReadDocument(r io.Reader, name string) (Document, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxSnapshotBytes+1))
	if err != nil {
		return Document{}, fmt.Errorf("reading snapshot %s: %w", name, err)
	}
	if len(raw) > MaxSnapshotBytes {
		return Document{}, &InputError{name, "", fmt.Sprintf("larger than %d MiB", MaxSnapshotBytes>>20),
			"a smaller snapshot; one of 10,000 nodes takes about 5 MiB"}
	}
	if err := checkSyntax(raw, name); err != nil {
		return Document{}, err
	}
	in, text := read(raw)
	doc := in.document()
	if fault := text.Fault(); fault != nil {
		return Document{}, inputError(name, fault)
	}
	doc.Findings = append(unknownFields(text, name), namesWithoutEffect(&doc, name)...)
	return doc, nil
}

// checkSyntax accepts one JSON object without repeated keys. For other text the error has line and column.
func checkSyntax(raw []byte, name string) error {
	var text json.RawMessage // decodes no further: an object may have millions of members
	err := json.Unmarshal(raw, &text)
	var syntax *json.SyntaxError
	content := bytes.TrimSpace(raw)
	switch {
	case len(content) == 0:
		return &InputError{File: name, Value: "it is empty", Want: wantSnapshot + wantKeys}
	case err == nil && bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")):
		return checkKeys(raw, name)
	case errors.As(err, &syntax) && content[0] != '{':
		return &InputError{File: name, Value: "not JSON", Want: wantSnapshot + wantKeys}
	case errors.As(err, &syntax):
		before := string(raw[:min(int(syntax.Offset), len(raw))])
		line := 1 + strings.Count(before, "\n")
		column := len(before) - strings.LastIndexByte(before, '\n') - 1
		return &InputError{name, fmt.Sprintf("line %d, column %d", line, column), syntax.Error(), "a JSON object"}
	}
	return &InputError{File: name, Value: "not a JSON object", Want: wantSnapshot}
}

// These describe a snapshot file in errors.
const (
	wantSnapshot = `a snapshot {"groups": […], "nodes": […], …}`
	wantKeys     = ", a JSON object with the keys of docs/reference/plan.md"
)

func checkKeys(raw []byte, name string) error {
	if path, twice := fieldpath.RepeatedKey(raw); twice {
		return &InputError{name, path.String(), "repeated key", "each key of an object once"}
	}
	return nil
}

func (in input) document() Document {
	field, done := in.fields()
	defer done(descriptiveKeys...)
	s := model.Snapshot{
		Name:                      field("name").Text(),
		TakenAt:                   field("takenAt").Time(),
		MaxWorkers:                field("maxWorkers").optionalInt(0, math.MaxInt32),
		UpscalingMode:             field("upscalingMode").upscalingMode(),
		IdleTimeoutSeconds:        field("idleTimeoutSeconds").Number(mostSeconds),
		LaunchConfigCheckDisabled: field("launchConfigCheckDisabled").Flag(),
		Groups:                    field("groups").groups(),
		Head:                      field("head").head(),
		Nodes:                     field("nodes").nodes(),
		KeptResources:             field("keptResources").requests(),
		OwnedRequests:             field("ownedRequests").ownedRequests(),
		Places:                    field("places").places(),
		Promised:                  field("promised").promises(),
		Quotas:                    field("quotas").quotas(),
		Policy:                    field("policy").policy(),
		Isolation:                 field("isolation").isolation(),
		Warm:                      field("warm").warm(),
		Turn:                      field("turn").Text(),
	}
	s.Requests = field("pendingRequests").requests()
	s.Gangs = field("pendingGangRequests").gangs()
	s.Constraint = field("requestResources").requests()
	doc := Document{Snapshot: s, TopologyLabels: field("topologyLabels").topologyLabels()}
	cluster, groups := field("rayCluster"), field("groups")
	nodes, pods, pools := field("kubeNodes"), field("kubePods"), field("pools")
	devices, claims := field("kubeResourceSlices"), field("kubeResourceClaims")
	classes, templates := field("kubeDeviceClasses"), field("kubeResourceClaimTemplates")
	rules := field("kubeDeviceTaintRules")
	doc.PoolsComplete = field("complete").Flag()
	switch {
	case !cluster.Absent() && !groups.Absent():
		cluster.Fail("either groups or rayCluster, not both")
	case cluster.Absent() && !(nodes.Absent() && pods.Absent() && pools.Absent()):
		cluster.Fail("a RayCluster manifest beside kubeNodes, kubePods or pools; groups have their own slice and pools")
	case cluster.Absent() && !(devices.Absent() && claims.Absent()):
		cluster.Fail("a RayCluster manifest beside kubeResourceSlices or kubeResourceClaims")
	case cluster.Absent() && !(classes.Absent() && templates.Absent() && rules.Absent()):
		cluster.Fail("a RayCluster manifest beside kubeDeviceClasses, kubeResourceClaimTemplates or " +
			"kubeDeviceTaintRules")
	case len(cluster.Raw()) > mostManifest:
		cluster.Fail(fmt.Sprintf("a manifest of at most %d MiB, more than an API server stores", mostManifest>>20))
	case !cluster.Absent():
		doc.RayCluster = cluster.Raw()
		doc.KubeNodes, doc.KubePods, doc.Pools = nodes.given(), pods.given(), pools.given()
		doc.KubeResourceSlices, doc.KubeResourceClaims = devices.given(), claims.given()
		doc.KubeDeviceClasses, doc.KubeResourceClaimTemplates = classes.given(), templates.given()
		doc.KubeDeviceTaintRules = rules.given()
	case len(groups.Raw()) == 0:
		groups.Fail("a list of worker groups, or rayCluster: {…} in its place")
	}
	return doc
}

// given returns the JSON of a value, nil if it is absent.
func (in input) given() json.RawMessage {
	if in.Absent() {
		return nil
	}
	return in.Raw()
}

// argument reads JSON from the command line.
func argument(text, name, want string) (input, *fieldpath.Document, error) {
	in, doc := read([]byte(strings.TrimSpace(text)))
	if !json.Valid(in.Raw()) || in.Absent() {
		return in, doc, &InputError{name, "", text, want}
	}
	return in, doc, checkKeys(in.Raw(), name)
}

// strictError returns the first fault of the document, or its first unknown key.
func strictError(doc *fieldpath.Document, name string) error {
	if fault := doc.Strict(); fault != nil {
		return inputError(name, fault)
	}
	return nil
}

// ReadRequest reads what one task requests: amounts only, such as {"GPU": 1}, or a request of a snapshot, with
// resources, count and labelSelectors. Errors are *InputErrors with name as the file. Unlike in a snapshot, an unknown
// key is an error, because somebody has just typed it.
func ReadRequest(text, name string) (raydemand.Request, error) {
	in, doc, err := argument(text, name, `an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if err != nil {
		return raydemand.Request{}, err
	}
	request := raydemand.Request{Count: 1}
	field, done := in.fields()
	if resources := field("resources"); resources.IsObject() {
		request.Bundle, request.Selectors = resources.bundle(), field("labelSelectors").selectors()
		request.Count, request.Slice = field("count").Count(1, model.MaxCount, 1), field("slice").sliceRequirement()
		request = request.Sliced()
		done()
	} else {
		request.Bundle = in.bundle()
	}
	return request, strictError(doc, name)
}

func (in input) policy() model.Policy {
	field, done := in.fields()
	defer done()
	return model.Policy{
		MaxInFlight: int(field("maxInFlight").Count(0, math.MaxInt32, 0)),
		Work:        field("work").Count(0, math.MaxInt64, 0),
	}
}

// mostSeconds is the largest number that a RayCluster can hold; users write it for never.
const mostSeconds = math.MaxInt32

func (in input) upscalingMode() string {
	mode := in.Text()
	if !knownUpscaling(mode) {
		in.Fail("Default, Aggressive or Conservative")
	}
	return mode
}

func knownUpscaling(mode string) bool {
	switch mode {
	case "", "Default", "Aggressive", "Conservative":
		return true
	}
	return false
}
