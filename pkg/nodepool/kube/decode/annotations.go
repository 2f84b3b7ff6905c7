package decode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"heliostat.dev/heliostat/internal/fieldpath"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/nodepool/capacity"
	"heliostat.dev/heliostat/pkg/nodepool/capacity/policytext"
	"heliostat.dev/heliostat/pkg/nodepool/giveback"
	"heliostat.dev/heliostat/pkg/nodepool/landing"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The annotations of a RayCluster that Heliostat reads. Any other annotation with the prefix is a finding.
const (
	annotationPrefix           = "heliostat.dev/"
	ModeAnnotation             = annotationPrefix + "mode"
	FreezeAnnotation           = annotationPrefix + "freeze"
	ResourceRequestsAnnotation = annotationPrefix + "resource-requests"
	// RequestedSinceAnnotation is the time of the first request for what is in resource-requests.
	RequestedSinceAnnotation = annotationPrefix + "resource-requests-since"
	PriceAnnotation          = annotationPrefix + "price"
	// NumGPUsSyncAnnotation says when Heliostat writes the number of GPUs that the device plugin reports into the spec.
	NumGPUsSyncAnnotation = annotationPrefix + "num-gpus-sync"
	// ShardAnnotation is the term of the shard that last wrote replicas. Heliostat writes it with each of its patches.
	ShardAnnotation = annotationPrefix + "shard"
)

// Codes of findings about annotations.
const (
	AnnotationUnknown    = "annotation-unknown"
	AnnotationUnreadable = "annotation-unreadable"
)

// KnownAnnotations are the annotations of a RayCluster that Heliostat reads.
var KnownAnnotations = []string{
	capacity.Annotation,
	nodepool.ConsolidateAnnotation,
	FreezeAnnotation,
	giveback.Annotation,
	nodepool.IdleSinceAnnotation,
	nodepool.IsolationAnnotation,
	ModeAnnotation,
	NumGPUsSyncAnnotation,
	PriceAnnotation,
	nodepool.ProvisioningAnnotation,
	giveback.ReclaimableAnnotation,
	giveback.ReclaimedAnnotation,
	ResourceRequestsAnnotation,
	RequestedSinceAnnotation,
	ShardAnnotation,
}

// readAnnotations fills in what the annotations say. An unreadable value changes as little as possible: an unreadable
// mode is shadow, and an unreadable freeze freezes.
func readAnnotations(metadata Fields, cluster *nodepool.Cluster) {
	annotations := metadata.Texts("annotations")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, annotationPrefix) && !slices.Contains(KnownAnnotations, key) {
			metadata.Report.Add(raydemand.Warning, AnnotationUnknown, metadata.at("annotations")+"."+key,
				annotations[key], "Heliostat does not read it", "use one of "+strings.Join(KnownAnnotations, ", "))
		}
	}
	unreadable := func(key, why, fix string) { unreadableAnnotation(metadata, key, annotations[key], why, fix) }
	if mode, set := annotations[ModeAnnotation]; set {
		cluster.Mode = nodepool.Mode(mode)
		if !cluster.Mode.Valid() {
			cluster.Mode, cluster.ModeInvalid = nodepool.Shadow, strconv.Quote(mode)
			unreadable(ModeAnnotation,
				"it is not a mode; Heliostat plans and reports the RayCluster, and writes nothing",
				"write managed, shadow or off")
		}
	}
	var readable bool
	if cluster.Freeze, readable = flagOf(annotations[FreezeAnnotation]); !readable {
		cluster.Freeze = true
		unreadable(FreezeAnnotation, "it is neither true nor false; Heliostat writes nothing",
			"write true, or remove it")
	}
	if text, set := annotations[nodepool.IsolationAnnotation]; set {
		var err error
		if cluster.Isolation, err = nodepool.IsolationOf(text, ""); err != nil {
			unreadable(nodepool.IsolationAnnotation,
				"it is not an isolation, so GPUs are used only where hardware keeps them apart",
				"write hardware, limit or any")
		}
	}
	if text, set := annotations[nodepool.ConsolidateAnnotation]; set {
		if cluster.Consolidate = nodepool.Consolidate(text); !cluster.Consolidate.Valid() {
			cluster.Consolidate = nodepool.ConsolidateNone
			unreadable(nodepool.ConsolidateAnnotation, "it does not say which work may move; Heliostat moves nothing",
				"write none, serve or restartable")
		}
	}
	if text := annotations[ResourceRequestsAnnotation]; text != "" {
		requests, problems := decodeRequests(text)
		cluster.RequestResources = requests
		for _, problem := range problems {
			unreadable(ResourceRequestsAnnotation, problem, `write [{"resources": {"GPU": 1}, "count": 2}]`)
		}
	}
	if text := annotations[RequestedSinceAnnotation]; text != "" {
		var err error
		if cluster.RequestedSince, err = time.Parse(time.RFC3339, text); err != nil {
			unreadable(RequestedSinceAnnotation,
				"it is not a time, so reports do not say since when resources are requested",
				"remove it; the next request writes it")
		}
	}
	if text, set := annotations[capacity.Annotation]; set {
		cluster.Policy = &capacity.Written{Source: "annotation " + capacity.Annotation}
		policy, fault := policytext.Read([]byte(text))
		if fault == nil {
			cluster.Policy.Policy = policy
		} else { // it wants nothing
			cluster.Policy.Fault = fault.Error()
			unreadableAnnotation(metadata, inAnnotation(capacity.Annotation, fault), fault.Value,
				"the policy cannot be read, so nothing is kept warm or suspended by it", "write "+fault.Want)
		}
	}
	if text, set := annotations[nodepool.IdleSinceAnnotation]; set {
		// A spec that somebody has changed since, for example to resume and suspend the RayCluster, is theirs.
		at, generation, _ := strings.Cut(text, " ")
		since, err := time.Parse(time.RFC3339, at)
		number, err2 := strconv.ParseInt(generation, 10, 64)
		switch {
		case err != nil || err2 != nil:
			unreadable(nodepool.IdleSinceAnnotation,
				"it is not a time and a generation, so Heliostat neither resumes nor deletes the RayCluster",
				"remove it, and set spec.suspend")
		case number == cluster.Generation:
			cluster.IdleSince = since
		}
	}
	if text, set := annotations[giveback.Annotation]; set {
		reservation, fault := giveback.ReadReservation([]byte(text))
		if fault == nil {
			cluster.GiveBack = reservation
		} else {
			unreadableAnnotation(metadata, inAnnotation(giveback.Annotation, fault), fault.Value,
				"the reservation cannot be read, so nothing is given back: want "+fault.Want,
				"remove it, and ask again with autoscaler give-back")
		}
	}
	if cluster.Reclaimable, readable = flagOf(annotations[giveback.ReclaimableAnnotation]); !readable {
		unreadable(giveback.ReclaimableAnnotation,
			"it is neither true nor false; no RayCluster takes GPUs from this one", "write true, or remove it")
	}
	if text, set := annotations[giveback.ReclaimedAnnotation]; set {
		var err error
		if cluster.Reclaimed, err = giveback.ReadTakings(text); err != nil {
			cluster.Reclaimable = false
			unreadable(giveback.ReclaimedAnnotation, err.Error()+"; no RayCluster takes GPUs from this one",
				"remove it; the next taking writes it")
		}
	}
}

// flagOf reads an annotation that is true or false, and false without one. Any other text is not readable.
func flagOf(text string) (is, readable bool) {
	return text == "true", text == "true" || text == "false" || text == ""
}

// unreadableAnnotation reports an annotation, or a field in one.
func unreadableAnnotation(metadata Fields, key, seen, why, fix string) {
	metadata.Report.Add(raydemand.Error, AnnotationUnreadable, metadata.at("annotations")+"."+key, seen, why, fix)
}

// inAnnotation names a field in an annotation.
func inAnnotation(key string, fault *fieldpath.Fault) string {
	return strings.TrimSuffix(key+": "+fault.Path.String(), ": ")
}

// IdleSinceText is the value of the annotation idle-since: the time, and the generation that suspending leads to.
func IdleSinceText(since time.Time, generation int64) string {
	return since.UTC().Format(time.RFC3339) + " " + strconv.FormatInt(generation, 10)
}

// priceGroups sets the prices of the groups from the annotation. An unreadable entry is a finding, and its group has no
// price: the planner uses prices only if every group in question has one.
func priceGroups(metadata Fields, cluster *nodepool.Cluster) {
	text := metadata.Texts("annotations")[PriceAnnotation]
	if text == "" {
		return
	}
	unreadable := func(why string) {
		unreadableAnnotation(metadata, PriceAnnotation, text, why,
			`write what one pod of each group costs an hour, for example {"gpu": 3.06, "cpu": 0.19}`)
	}
	var prices map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &prices); err != nil {
		unreadable("it is not a JSON object: " + err.Error())
		return
	}
	for _, group := range slices.Sorted(maps.Keys(prices)) {
		at := slices.IndexFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return g.Name == group })
		var price *float64 // null is no price; 0 would make the group the cheapest
		switch err := json.Unmarshal(prices[group], &price); {
		case at < 0:
			unreadable(fmt.Sprintf("there is no worker group %q", group))
		case err != nil || price == nil || *price < 0 || *price > landing.MaxPrice:
			unreadable(fmt.Sprintf("the price of group %s is %s, want a number from 0 to %.0f", group, prices[group],
				landing.MaxPrice))
		default:
			cluster.Groups[at].Price = price
		}
	}
}

// annotateGroups sets what the annotations say of all groups.
func annotateGroups(metadata Fields, groups []nodepool.WorkerGroup) {
	annotations, sync := metadata.Texts("annotations"), nodepool.SyncReport
	if text := annotations[NumGPUsSyncAnnotation]; text != "" {
		if sync = nodepool.SyncMode(text); !sync.Valid() {
			sync = nodepool.SyncReport
			unreadableAnnotation(metadata, NumGPUsSyncAnnotation, text,
				"it is not report, when-empty or enforce; Heliostat writes nothing there",
				"write report, when-empty or enforce")
		}
	}
	provisions, readable := flagOf(annotations[nodepool.ProvisioningAnnotation])
	if !readable {
		unreadableAnnotation(metadata, nodepool.ProvisioningAnnotation, annotations[nodepool.ProvisioningAnnotation],
			"it is neither true nor false; no ProvisioningRequest is created", "write true, or remove it")
	}
	for i := range groups {
		groups[i].NumGPUsSync, groups[i].Provisions = sync, provisions
	}
}

// MaxRequestsBytes bounds the annotation resource-requests. Kubernetes allows 256 KiB for all annotations of an object,
// and kubectl keeps a copy of the whole object in one of them.
const MaxRequestsBytes = 64 << 10

// EncodeRequests returns the annotations that hold requests; a nil value removes an annotation.
func EncodeRequests(requests []raydemand.Request, since time.Time) (map[string]any, error) {
	annotations := map[string]any{ResourceRequestsAnnotation: nil, RequestedSinceAnnotation: nil}
	if len(requests) == 0 {
		return annotations, nil
	}
	text, err := json.Marshal(requests)
	if err != nil {
		return nil, err
	}
	if len(text) > MaxRequestsBytes {
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", nodepool.ErrTooLarge, len(text), MaxRequestsBytes)
	}
	annotations[ResourceRequestsAnnotation] = string(text)
	if !since.IsZero() {
		annotations[RequestedSinceAnnotation] = since.UTC().Format(time.RFC3339)
	}
	return annotations, nil
}

// maxRequestCount bounds one entry of resource-requests; a larger number is a mistake.
const maxRequestCount = 1_000_000

// decodeRequests reads the annotation entry by entry, so that a bad entry does not affect the others.
func decodeRequests(text string) (requests []raydemand.Request, problems []string) {
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, []string{"it is not a JSON list: " + err.Error()}
	}
	for i, entry := range entries {
		var request raydemand.Request
		err := json.Unmarshal(entry, &request)
		if request = request.Sliced(); err == nil {
			err = CheckRequest(request)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %d is ignored: %v", i, err))
			continue
		}
		requests = append(requests, request)
	}
	return requests, problems
}

// CheckRequest returns an error if a request cannot be planned: a count out of range, or resources that are empty or
// negative.
func CheckRequest(request raydemand.Request) error {
	if request.Count < 1 || request.Count > maxRequestCount {
		return fmt.Errorf("count is %d, want 1 to %d", request.Count, maxRequestCount)
	}
	if request.Bundle.IsZero() {
		return fmt.Errorf("resources are empty")
	}
	for _, name := range request.Bundle.Names() {
		if name == "" || request.Bundle[name] < 0 {
			return fmt.Errorf("resource %q is %s", name, request.Bundle[name])
		}
	}
	return nil
}
