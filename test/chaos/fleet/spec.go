package fleet

import (
	"encoding/json"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/test/chaos/verdict"
)

// specOf returns what a judge needs of a RayCluster.
func specOf(object *unstructured.Unstructured) verdict.Spec {
	var spec struct {
		Spec struct {
			WorkerGroupSpecs []struct {
				GroupName                          string
				Replicas, MinReplicas, MaxReplicas int64
				ScaleStrategy                      struct{ WorkersToDelete []string }
			}
		}
	}
	s := verdict.Spec{At: time.Now(), Cluster: object.GetName(), Writer: writer(object)}
	text, err := json.Marshal(object.Object)
	if err != nil || json.Unmarshal(text, &spec) != nil {
		return s // the API server checks the types
	}
	for _, g := range spec.Spec.WorkerGroupSpecs {
		s.Groups = append(s.Groups, verdict.Group{Name: g.GroupName, Replicas: g.Replicas, Min: g.MinReplicas,
			Max: g.MaxReplicas, Delete: g.ScaleStrategy.WorkersToDelete})
	}
	return s
}

// writer returns the field manager that owns the list of worker groups. The list is atomic, so that is the last one who
// changed anything of it.
func writer(object *unstructured.Unstructured) string {
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource != "" || entry.FieldsV1 == nil {
			continue
		}
		var fields struct {
			Spec map[string]json.RawMessage `json:"f:spec"`
		}
		if json.Unmarshal(entry.FieldsV1.Raw, &fields) != nil {
			continue
		}
		if _, owns := fields.Spec["f:workerGroupSpecs"]; owns {
			return entry.Manager
		}
	}
	return ""
}
