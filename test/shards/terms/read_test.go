package terms

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// line is a line of an audit log about a patch.
func line(code int, body string) string {
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"RequestResponse","stage":"ResponseComplete",`+
		`"verb":"patch","userAgent":"heliostat/0.1.0 (linux/amd64) shard/h-a","objectRef":{"resource":"rayclusters",`+
		`"namespace":"ml","name":"c","apiGroup":"ray.io"},"responseStatus":{"code":%d},"requestObject":%s,`+
		`"responseObject":{"metadata":{"resourceVersion":"17"}},"stageTimestamp":"2026-11-24T12:00:00.000001Z"}`+"\n", code, body)
}

// patch is the body of a patch that tests and writes the annotation.
const patch = `[{"op":"test","path":"/metadata/uid","value":"u"},` +
	`{"op":"test","path":"/metadata/annotations/heliostat.dev~1shard","value":"h-b.2"},` +
	`{"op":"replace","path":"/spec/workerGroupSpecs/0/replicas","value":3},` +
	`{"op":"add","path":"/metadata/annotations/heliostat.dev~1shard","value":"h-a.1"}]`

func TestALogIsRead(t *testing.T) {
	others := strings.Replace(line(200, patch), `"verb":"patch"`, `"verb":"get"`, 1) +
		strings.Replace(line(200, patch), `"resource":"rayclusters"`, `"resource":"rayclusters","subresource":"status"`, 1) +
		strings.Replace(line(200, patch), `"resource":"rayclusters"`, `"resource":"pods"`, 1)
	text := others + line(200, patch) + line(422, patch) + line(422, patch) + line(500, patch) + `{"kind":"Event","ver`
	log, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(log.Writes) != 1 || !reflect.DeepEqual(log.Refused, map[int]int{422: 2, 500: 1}) || log.Torn != 0 {
		t.Fatalf("%+v", log)
	}
	got := log.Writes[0]
	want := Write{Cluster: "ml/c", Revision: 17, Term: "h-a.1", Tested: "h-b.2", Fenced: true, Shard: "h-a", At: got.At}
	if got != want || got.At.Nanosecond() != 1000 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestFirstWritesTestThatThereIsNoTerm(t *testing.T) {
	for name, body := range map[string]string{
		"no annotations": `[{"op":"test","path":"/metadata/annotations","value":null},` +
			`{"op":"add","path":"/metadata/annotations","value":{"heliostat.dev/shard":"h-a.1","x":"y"}}]`,
		"no term": `[{"op":"test","path":"/metadata/annotations/heliostat.dev~1shard","value":null},` +
			`{"op":"add","path":"/metadata/annotations/heliostat.dev~1shard","value":"h-a.1"}]`,
	} {
		log, err := Read(strings.NewReader(line(200, body)))
		if err != nil || len(log.Writes) != 1 || log.Writes[0].Term != "h-a.1" || !log.Writes[0].Fenced || log.Writes[0].Tested != "" {
			t.Errorf("%s: %+v, %v", name, log, err)
		}
	}
	log, err := Read(strings.NewReader(line(200, `[{"op":"replace","path":"/spec/x","value":1}]`)))
	if err != nil || len(log.Writes) != 1 || log.Writes[0].Fenced || log.Writes[0].Term != "" {
		t.Errorf("neither: %+v, %v", log, err)
	}
}

func TestATornLineHidesNoOther(t *testing.T) {
	torn := line(200, patch)
	log, err := Read(strings.NewReader(torn[:len(torn)/2] + line(200, patch) + line(200, patch)))
	if err != nil || len(log.Writes) != 2 || log.Torn != 1 {
		t.Errorf("%+v, %v", log, err)
	}
}

func TestALogThatCannotBeJudgedIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"no log":       "hello\n",
		"no revision":  strings.Replace(line(200, patch), `"17"`, `""`, 1),
		"not a patch":  line(200, `{"metadata":{}}`),
		"no body":      strings.Replace(line(200, patch), `"requestObject":`+patch+",", "", 1),
		"only a piece": `{"kind":"Event","ver` + "\n",
	} {
		if log, err := Read(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", name, log)
		}
	}
}
