package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/pkg/raydemand"
)

// The annotations of a RayCluster that Heliostat reads. Any other under the prefix is a finding.
const (
	annotationPrefix           = "heliostat.dev/"
	ModeAnnotation             = annotationPrefix + "mode"
	FreezeAnnotation           = annotationPrefix + "freeze"
	ResourceRequestsAnnotation = annotationPrefix + "resource-requests"
	// RequestedSinceAnnotation is when what stands in resource-requests was first asked for.
	RequestedSinceAnnotation = annotationPrefix + "resource-requests-since"
	PriceAnnotation          = annotationPrefix + "price"
	// NumGPUsSyncAnnotation says when the number of GPUs that the device plugin reports is written into the spec.
	NumGPUsSyncAnnotation = annotationPrefix + "num-gpus-sync"
)

// Codes of findings about annotations.
const (
	AnnotationUnknown    = "annotation-unknown"
	AnnotationUnreadable = "annotation-unreadable"
)

var knownAnnotations = []string{
	FreezeAnnotation, nodepool.IsolationAnnotation, ModeAnnotation, NumGPUsSyncAnnotation, PriceAnnotation, RequestTraceAnnotation, ResourceRequestsAnnotation,
	RequestedSinceAnnotation, ScaleUpTraceAnnotation,
}

// KnownAnnotations are the annotations of a RayCluster that Heliostat reads.
func KnownAnnotations() []string { return slices.Clone(knownAnnotations) }

// readAnnotations fills what the annotations say. What cannot be read is taken in the sense that changes least: an
// unreadable mode is shadow and an unreadable freeze freezes.
func readAnnotations(metadata fields, cluster *nodepool.Cluster) {
	annotations := metadata.texts("annotations")
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if strings.HasPrefix(key, annotationPrefix) && !slices.Contains(knownAnnotations, key) {
			metadata.report.add(raydemand.Warning, AnnotationUnknown, metadata.at("annotations")+"."+key, annotations[key],
				"nobody reads it", "use one of "+strings.Join(knownAnnotations, ", "))
		}
	}
	unreadable := func(key, why, fix string) {
		metadata.report.add(raydemand.Error, AnnotationUnreadable, metadata.at("annotations")+"."+key, annotations[key], why, fix)
	}
	if mode, set := annotations[ModeAnnotation]; set {
		cluster.Mode = nodepool.Mode(mode)
		if !cluster.Mode.Valid() {
			cluster.Mode = nodepool.Shadow
			unreadable(ModeAnnotation, "it is no mode; the RayCluster is planned and reported, and nothing is written", "write managed, shadow or off")
		}
	}
	switch freeze := annotations[FreezeAnnotation]; freeze {
	case "", "false":
	case "true":
		cluster.Freeze = true
	default:
		cluster.Freeze = true
		unreadable(FreezeAnnotation, "it is neither true nor false; nothing is written", "write true, or remove it")
	}
	if text, set := annotations[nodepool.IsolationAnnotation]; set {
		var err error
		if cluster.Isolation, err = nodepool.IsolationOf(text, ""); err != nil {
			unreadable(nodepool.IsolationAnnotation, "it is no isolation, so GPUs are used only where hardware keeps them apart", "write hardware, limit or any")
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
		since, err := time.Parse(time.RFC3339, text)
		cluster.RequestedSince = since
		if err != nil {
			unreadable(RequestedSinceAnnotation, "it is no time, so nobody is told since when resources are requested", "remove it; the next request writes it")
		}
	}
}

// priceGroups gives the groups the prices that the annotation names. A price is worth nothing in part: a plan goes by
// prices only where every group in question has one, so an unreadable entry is told and leaves its group without.
func priceGroups(metadata fields, cluster *nodepool.Cluster) {
	text := metadata.texts("annotations")[PriceAnnotation]
	if text == "" {
		return
	}
	unreadable := func(why string) {
		metadata.report.add(raydemand.Error, AnnotationUnreadable, metadata.at("annotations")+"."+PriceAnnotation, text, why,
			`write what one pod of each group costs an hour, for example {"gpu": 3.06, "cpu": 0.19}`)
	}
	var prices map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &prices); err != nil {
		unreadable("it is not a JSON object: " + err.Error())
		return
	}
	for _, group := range slices.Sorted(maps.Keys(prices)) {
		at := slices.IndexFunc(cluster.Groups, func(g nodepool.WorkerGroup) bool { return g.Name == group })
		var price float64
		switch err := json.Unmarshal(prices[group], &price); {
		case at < 0:
			unreadable(fmt.Sprintf("there is no worker group %q", group))
		case err != nil || price < 0 || price > maxPrice:
			unreadable(fmt.Sprintf("the price of group %s is %s, want a number from 0 to %.0f", group, prices[group], maxPrice))
		default:
			cluster.Groups[at].Price = &price
		}
	}
}

// maxPrice bounds the price of a pod: more is a slip, and sums stay exact enough to be compared.
const maxPrice = 1e9

// maxRequestCount bounds one entry of resource-requests; a larger number is a slip, not a cluster.
const maxRequestCount = 1_000_000

// mostProblems is how many bad entries of resource-requests are told one by one.
const mostProblems = 3

// decodeRequests reads the annotation entry by entry: one that cannot be read does not cost the others.
func decodeRequests(text string) (requests []raydemand.Request, problems []string) {
	var entries []json.RawMessage
	if err := json.Unmarshal([]byte(text), &entries); err != nil {
		return nil, []string{"it is not a JSON list: " + err.Error()}
	}
	for i, entry := range entries {
		var request raydemand.Request
		err := json.Unmarshal(entry, &request)
		if request = request.Sliced(); err == nil {
			err = checkRequest(request)
		}
		if err != nil {
			problems = append(problems, fmt.Sprintf("entry %d is left out: %v", i, err))
			continue
		}
		requests = append(requests, request)
	}
	if more := len(problems) - mostProblems; more > 0 {
		problems = append(problems[:mostProblems], fmt.Sprintf("%d more entries are left out", more))
	}
	return requests, problems
}

func checkRequest(request raydemand.Request) error {
	if request.Count < 1 || request.Count > maxRequestCount {
		return fmt.Errorf("count is %d, want 1 to %d", request.Count, maxRequestCount)
	}
	if request.Bundle.IsZero() {
		return fmt.Errorf("resources ask for nothing")
	}
	for _, name := range request.Bundle.Names() {
		if name == "" || request.Bundle[name] < 0 {
			return fmt.Errorf("resource %q is %s", name, request.Bundle[name])
		}
	}
	return nil
}
