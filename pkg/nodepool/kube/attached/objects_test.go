package attached

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"heliostat.dev/heliostat/pkg/nodepool"
)

// object is one of a RayCluster; without an owner, it is not Heliostat's.
func object(namespace, name, owner, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetAnnotations(map[string]string{"value": value})
	if owner != "" {
		o.SetOwnerReferences([]metav1.OwnerReference{{Kind: "RayCluster", Name: owner, UID: "uid"}})
	}
	return o
}

func read(o *unstructured.Unstructured) (made Object[string], ours bool) {
	for _, owner := range o.GetOwnerReferences() {
		return Object[string]{nodepool.ClusterKey{Namespace: o.GetNamespace(), Name: owner.Name}, string(owner.UID),
			o.GetAnnotations()["value"]}, true
	}
	return made, false
}

func TestObjectsOfARayCluster(t *testing.T) {
	llm, asr := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, nodepool.ClusterKey{Namespace: "ml", Name: "asr"}
	other := nodepool.ClusterKey{Namespace: "other", Name: "llm"}
	var told []nodepool.ClusterKey
	o := New(Config{Namespaces: []string{"ml", "other"}, Changed: func(key nodepool.ClusterKey) { told = append(told, key) }},
		Kind[*unstructured.Unstructured, string]{Read: read})
	if values, state := o.Of(llm, "uid"); len(values) > 0 || state.Unknown == "" || state.Tried {
		t.Errorf("before the first read: %v, %+v", values, state)
	}
	for _, step := range []struct {
		name       string
		do         func()
		told       []nodepool.ClusterKey
		llm, other []string
	}{
		{"the first list", func() {
			o.Store("ml").ReplaceAll([]*unstructured.Unstructured{object("ml", "a", "llm", "1"), object("ml", "b", "", "")}, "")
		}, []nodepool.ClusterKey{llm}, []string{"1"}, nil},
		{"the list of another namespace", func() {
			o.Store("other").ReplaceAll([]*unstructured.Unstructured{object("other", "a", "llm", "9")}, "")
		}, []nodepool.ClusterKey{other}, []string{"1"}, []string{"9"}},
		{"the same again", func() { o.put(object("ml", "a", "llm", "1"), false) }, nil, []string{"1"}, []string{"9"}},
		{"a change", func() { o.put(object("ml", "a", "llm", "2"), false) }, []nodepool.ClusterKey{llm}, []string{"2"}, []string{"9"}},
		{"another owner", func() { o.put(object("ml", "a", "asr", "2"), false) }, []nodepool.ClusterKey{llm, asr}, nil, []string{"9"}},
		{"no owner", func() { o.put(object("ml", "a", "", "2"), false) }, []nodepool.ClusterKey{asr}, nil, []string{"9"}},
		{"its end, which says nothing new", func() { o.remove(object("ml", "a", "", "2")) }, nil, nil, []string{"9"}},
		{"an end", func() { o.remove(object("other", "a", "", "")) }, []nodepool.ClusterKey{other}, nil, nil},
	} {
		told = nil
		step.do()
		ofLLM, _ := o.Of(llm, "uid")
		ofOther, _ := o.Of(other, "uid")
		if !slices.Equal(told, step.told) || !slices.Equal(ofLLM, step.llm) || !slices.Equal(ofOther, step.other) {
			t.Errorf("%s: told %v, and there are %v and %v; want %v, %v and %v", step.name, told, ofLLM, ofOther,
				step.told, step.llm, step.other)
		}
	}
	_ = o.Store("ml").Add(object("ml", "a", "llm", "1"))
	if clusters := o.Clusters(); !slices.Equal(clusters, []nodepool.ClusterKey{llm}) {
		t.Errorf("objects are for %v", clusters)
	}
	if values, _ := o.Of(llm, "of a former RayCluster"); len(values) > 0 {
		t.Errorf("%v of a former RayCluster of that name", values)
	}
	o.Unread("ml", "forbidden")
	if values, state := o.Of(llm, "uid"); len(values) > 0 || state.Unknown != "forbidden" || !state.Tried {
		t.Errorf("without the right to read: %v, %+v", values, state)
	}
	if _, state := o.Of(nodepool.ClusterKey{Namespace: "elsewhere"}, ""); state.Unknown == "" || !state.Tried {
		t.Errorf("in a namespace that is not served: %+v", state)
	}
}

func TestAReadingThatMeansTheSameIsKeptAndIsNoNews(t *testing.T) {
	llm, changes := nodepool.ClusterKey{Namespace: "ml", Name: "llm"}, 0
	o := New(Config{Changed: func(nodepool.ClusterKey) { changes++ }},
		Kind[*unstructured.Unstructured, string]{Read: read, Same: func(before, now string) bool { return before[0] == now[0] }})
	_ = o.Store("ml").Add(object("ml", "a", "llm", "1 first"))
	o.put(object("ml", "a", "llm", "1 second"), false)
	if values, _ := o.Of(llm, "uid"); changes != 1 || !slices.Equal(values, []string{"1 second"}) {
		t.Errorf("%v after %d changes", values, changes)
	}
	if o.put(object("ml", "a", "llm", "2"), false); changes != 2 {
		t.Errorf("%d changes, want 2", changes)
	}
}

func TestWhyObjectsCannotBeReadIsReportedOnce(t *testing.T) {
	var reported []string
	o := New(Config{Namespaces: []string{"ml"}}, Kind[*unstructured.Unstructured, string]{Read: read,
		Unread: func(namespace, why string) { reported = append(reported, namespace+": "+why) }})
	o.Unread("ml", "forbidden")
	o.Unread("ml", "forbidden")
	o.Unread("ml", "not served")
	o.Store("ml").ReplaceAll(nil, "")
	o.Unread("ml", "not served")
	if want := []string{"ml: forbidden", "ml: not served", "ml: not served"}; !slices.Equal(reported, want) {
		t.Errorf("reported %q, want %q", reported, want)
	}
}
