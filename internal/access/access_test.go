package access

import "testing"

func TestRightsReadAsPeopleSayThem(t *testing.T) {
	for want, right := range map[string]Right{
		`get rayclusters.ray.io "llm" in namespace "ml"`: {Verb: "get", Group: "ray.io", Resource: "rayclusters", Namespace: "ml", Name: "llm"},
		`list nodes`:   {Verb: "list", Resource: "nodes"},
		`get /metrics`: {Verb: "get", Path: "/metrics"},
	} {
		if got := right.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
