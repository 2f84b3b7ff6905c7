// Package snapshotfile reads, checks and bounds the JSON form of snapshots: the files of `autoscaler plan`, the demands
// and changes that flags and REST calls have, and the snapshots that a live cluster exports. Errors name the file, the
// field, the value, and what would be right.
//
// One table (fields.go) says what each field may hold. The package plans nothing, and imports only the planner's model.
package snapshotfile

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/internal/planner/model"
	"heliostat.dev/heliostat/pkg/gpuinfo"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// MaxSnapshotBytes bounds the size of a snapshot file. A cluster of 10,000 nodes takes about 5 MiB.
const MaxSnapshotBytes = 64 << 20

// mostManifest bounds a RayCluster in bytes; etcd stores objects of up to 1.5 MiB.
const mostManifest = 4 << 20

// Document is a snapshot file. A RayCluster manifest, which the caller decodes, may replace its groups.
type Document struct {
	model.Snapshot
	// TopologyLabels are the labels of Kubernetes nodes that Ray nodes have as well, beside those of the command line,
	// each with the label of Ray nodes.
	TopologyLabels map[string]string `json:"topologyLabels"`
	// RayCluster is the manifest in the file, or nil if the file has groups.
	RayCluster json.RawMessage `json:"rayCluster"`
	// KubeNodes are the Node objects for the manifest, KubePods the Pod objects on them, and Pools the configuration of
	// pools. Each may be nil.
	KubeNodes json.RawMessage `json:"kubeNodes"`
	KubePods  json.RawMessage `json:"kubePods"`
	Pools     json.RawMessage `json:"pools"`
	// KubeResourceSlices are the devices on the nodes, and KubeResourceClaims say which of them are allocated. Each may
	// be nil.
	KubeResourceSlices json.RawMessage `json:"kubeResourceSlices"`
	KubeResourceClaims json.RawMessage `json:"kubeResourceClaims"`
	// KubeDeviceClasses say which resources the devices stand for, and KubeResourceClaimTemplates what a claim of a pod
	// requests. Each may be nil.
	KubeDeviceClasses          json.RawMessage `json:"kubeDeviceClasses"`
	KubeResourceClaimTemplates json.RawMessage `json:"kubeResourceClaimTemplates"`
	// KubeLimitRanges and KubeResourceQuotas are those of the namespace: what pods request by default, which are
	// refused, and how much there may be of them. Each may be nil.
	KubeLimitRanges    json.RawMessage `json:"kubeLimitRanges"`
	KubeResourceQuotas json.RawMessage `json:"kubeResourceQuotas"`
	// PoolsComplete says that no other pool can get a node.
	PoolsComplete bool `json:"complete"`
	// Findings report unknown keys.
	Findings []raydemand.Finding `json:"-"`
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
	in, text := fieldpath.Read(raw)
	doc := document(in)
	if fault := text.Fault(); fault != nil {
		return Document{}, inputError(name, fault)
	}
	doc.Findings = unknownFields(text, name)
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

// kubeKeys are the keys of a file that say more about a RayCluster manifest.
var kubeKeys = []string{"kubeNodes", "kubePods", "pools", "kubeResourceSlices", "kubeResourceClaims",
	"kubeDeviceClasses", "kubeResourceClaimTemplates", "kubeLimitRanges", "kubeResourceQuotas"}

// turns matches where a plan may continue: at its beginning, or at a position that a plan before has named.
var turns = regexp.MustCompile("^([0-9a-f]{16})?$")

func document(in fieldpath.JSON) Document {
	var doc Document
	members := decodeFields(in, reflect.ValueOf(&doc).Elem(), nil, descriptiveKeys...)
	for i := range doc.Groups {
		if pod := doc.Groups[i].Pod; pod != nil {
			pod.Name = doc.Groups[i].Name
		}
	}
	if doc.Head != nil && doc.Head.State == "" {
		doc.Head.State = model.Running
	}
	if turn := members.Member("turn"); !turns.MatchString(doc.Turn) {
		turn.Fail("deferred.next of the plan before, 16 hexadecimal digits, or none to begin")
	}
	labels, _ := members.Member("topologyLabels").Named("an object of labels")
	for _, each := range labels {
		each.NonEmpty("the label of Ray nodes")
	}
	cluster, groups := members.Member("rayCluster"), members.Member("groups")
	switch {
	case doc.RayCluster != nil && !cluster.IsObject():
		cluster.Fail("the manifest of a RayCluster, an object {…}")
	case doc.RayCluster != nil && !groups.Absent():
		cluster.Fail("either groups or rayCluster, not both")
	case doc.RayCluster == nil && slices.ContainsFunc(kubeKeys, func(key string) bool {
		return !members.Member(key).Absent()
	}):
		cluster.Fail("a RayCluster manifest beside " + strings.Join(kubeKeys, ", ") +
			"; groups have their own slice and pools")
	case len(doc.RayCluster) > mostManifest:
		cluster.Fail(fmt.Sprintf("a manifest of at most %d MiB, more than an API server stores", mostManifest>>20))
	case doc.RayCluster == nil && !members.Has("groups"):
		groups.Fail("a list of worker groups, or rayCluster: {…} in its place")
	}
	complete(&doc.Snapshot)
	return doc
}

// complete fills in what the other fields of a snapshot say.
func complete(s *model.Snapshot) {
	for i := range s.Groups {
		if slice := s.Groups[i].Slice; slice != nil {
			slice.Kind = cmp.Or(slice.Kind, gpuinfo.UnknownKind)
			slice.Isolation = cmp.Or(slice.Isolation, gpuinfo.UnknownIsolation)
		}
	}
	for _, requests := range s.RequestLists() {
		for i := range requests {
			requests[i] = requests[i].Sliced()
		}
	}
	if s.Warm != nil {
		for i := range s.Warm.Keep {
			if e := &s.Warm.Keep[i]; e.Group == "" {
				request := e.Request()
				e.Resources = request.Sliced().Bundle
			}
		}
	}
}

// argument reads JSON from the command line.
func argument(text, name, want string) (fieldpath.JSON, *fieldpath.Document, error) {
	in, doc := fieldpath.Read([]byte(strings.TrimSpace(text)))
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
	if resources := in.Members().Member("resources"); resources.IsObject() {
		decodeFields(in, reflect.ValueOf(&request).Elem(),
			[]string{"resources", "labelSelectors", "count", "slice"})
	} else {
		resources := fieldsOf(reflect.TypeFor[raydemand.Request]())[0]
		decode(in, reflect.ValueOf(&request.Bundle).Elem(), &resources.Rule)
	}
	return request.Sliced(), strictError(doc, name)
}

// ReadDemand reads what a task, a bundle or a placement group requests. An object with bundles is a gang of a snapshot,
// and its id is optional; ReadRequest reads everything else. The question then has one of the two. Errors are those of
// ReadRequest.
func ReadDemand(text, name string) (model.Question, error) {
	in, doc, err := argument(text, name, `an object of amounts such as {"CPU": 4, "GPU": 0.5}`)
	if err != nil {
		return model.Question{}, err
	}
	members := in.Members()
	if !in.Failed() && members.Member("bundles").IsList() {
		var gang raydemand.Gang
		decodeFields(in, reflect.ValueOf(&gang).Elem(), nil)
		return model.Question{AskedGang: &gang}, strictError(doc, name)
	}
	if count := members.Member("count"); !in.Failed() && !count.Absent() {
		if !members.Member("resources").IsObject() && !members.Member("slice").IsObject() {
			count.Fail(`{"resources": {…}, "count": ` + string(count.Raw()) + `}, because count is not a resource`)
			return model.Question{}, strictError(doc, name)
		}
	}
	request, err := ReadRequest(text, name)
	return model.Question{Demand: &request}, err
}
