package terms

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// annotation is the annotation with the term, and pointer its JSON pointer.
const (
	annotation = "heliostat.dev/shard"
	pointer    = "/metadata/annotations/heliostat.dev~1shard"
)

// Write is a patch of a RayCluster that the API server has stored.
type Write struct {
	Cluster string
	// Revision is the resource version that the write has made.
	Revision int64
	// Term is what the patch writes into the annotation, and Tested what it tests there; "" for nothing.
	Term, Tested string
	// Fenced is whether the patch tests the annotation, or that there are no annotations.
	Fenced bool
	// Shard is the name of the process in its user agent, "" for none.
	Shard string
	At    time.Time
	// inferred is whether the log lacks it, and a later write proves it.
	inferred bool
}

// event is what is read of a line of the log.
type event struct {
	Verb, UserAgent string
	Stage           string
	ObjectRef       struct{ Resource, Namespace, Name, Subresource string }
	ResponseStatus  struct{ Code int }
	StageTimestamp  time.Time
	RequestObject   json.RawMessage
	ResponseObject  struct {
		Metadata struct{ ResourceVersion string }
	}
}

// operation is a part of a JSON patch.
type operation struct {
	Op, Path string
	Value    any
}

// Log is what a log says.
type Log struct {
	Writes []Write
	// Refused is how many patches of RayClusters the API server did not store, by the status of the answer.
	Refused map[int]int
	// Torn is how many lines have no end: the API server was killed while it wrote them.
	Torn int
}

// Read reads the patches of RayClusters from an audit log with requests and responses. Other lines do not count. Lines
// that are torn are counted, and other errors returned.
func Read(log io.Reader) (*Log, error) {
	l := &Log{Refused: map[int]int{}}
	for reader := bufio.NewReaderSize(log, 1<<20); ; {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF { // a line without its end is still being written
			return l, nil
		}
		if err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
		if err := l.add(line); err != nil {
			return nil, fmt.Errorf("reading the audit log: %w", err)
		}
	}
}

// begin is how each line begins.
var begin = []byte(`{"kind":"Event",`)

// add reads a line. After a torn line the next one follows without a line break.
func (l *Log) add(line []byte) error {
	if at := bytes.LastIndex(line, begin); at > 0 && !json.Valid(line) {
		l.Torn++
		line = line[at:]
	}
	var e event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("line %.80q: %w", line, err)
	}
	if e.Verb != "patch" || e.Stage != "ResponseComplete" || e.ObjectRef.Resource != "rayclusters" ||
		e.ObjectRef.Subresource != "" {
		return nil
	}
	if e.ResponseStatus.Code != 200 {
		l.Refused[e.ResponseStatus.Code]++
		return nil
	}
	w, err := e.write()
	if err == nil {
		l.Writes = append(l.Writes, w)
	}
	return err
}

// write returns the write of an event.
func (e *event) write() (Write, error) {
	w := Write{Cluster: e.ObjectRef.Namespace + "/" + e.ObjectRef.Name, At: e.StageTimestamp}
	var err error
	if w.Revision, err = strconv.ParseInt(e.ResponseObject.Metadata.ResourceVersion, 10, 64); err != nil {
		return w, fmt.Errorf("the response to a patch of %s has no resource version: %w", w.Cluster, err)
	}
	var steps []operation
	if err := json.Unmarshal(e.RequestObject, &steps); err != nil {
		return w, fmt.Errorf("reading a patch of %s: %w", w.Cluster, err)
	}
	for _, step := range steps {
		w.step(step)
	}
	for _, part := range strings.Fields(e.UserAgent) {
		if name, named := strings.CutPrefix(part, "shard/"); named {
			w.Shard = name
		}
	}
	return w, nil
}

// step takes up what a step of the patch does to the annotation.
func (w *Write) step(step operation) {
	switch text, _ := step.Value.(string); {
	case step.Op == "test" && step.Path == pointer:
		w.Fenced, w.Tested = true, text
	case step.Op == "test" && step.Path == "/metadata/annotations" && step.Value == nil:
		w.Fenced = true
	case slices.Contains([]string{"add", "replace"}, step.Op) && step.Path == pointer:
		w.Term = text
	case step.Op == "add" && step.Path == "/metadata/annotations":
		if all, are := step.Value.(map[string]any); are {
			w.Term, _ = all[annotation].(string)
		}
	}
}
