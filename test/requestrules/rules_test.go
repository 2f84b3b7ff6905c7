// Package requestrules has no code. Its tests hold REST and the CustomResourceDefinition of ResourceRequests to the
// same rules.
package requestrules

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	crdvalidation "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/pkg/nodepool"
	"heliostat.dev/heliostat/test/rig"
)

var llm = nodepool.ClusterKey{Namespace: "ml", Name: "llm"}

// definition is the CustomResourceDefinition as the API server has it.
type definition struct {
	structural *schema.Structural
	values     validation.SchemaValidator
	rules      *cel.Validator
}

func readDefinition(t *testing.T) definition {
	t.Helper()
	text, err := os.ReadFile("../../deploy/chart/crds/heliostat.dev_resourcerequests.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var written apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &written); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	install.Install(scheme)
	scheme.Default(&written)
	written.Status.StoredVersions = []string{"v1alpha1"}
	var crd apiextensions.CustomResourceDefinition
	if err := scheme.Convert(&written, &crd, nil); err != nil {
		t.Fatal(err)
	}
	// What the API server checks of a definition includes what its rules may cost.
	if faults := crdvalidation.ValidateCustomResourceDefinition(t.Context(), &crd); len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	var d definition
	values := crd.Spec.Validation
	if values == nil {
		values = crd.Spec.Versions[0].Schema
	}
	if d.structural, err = schema.NewStructural(values.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	if d.values, _, err = validation.NewSchemaValidator(values.OpenAPIV3Schema); err != nil {
		t.Fatal(err)
	}
	d.rules = cel.NewValidator(d.structural, true, celconfig.PerCallLimit)
	return d
}

// takes reports whether the API server accepts a spec as strictly as kubectl asks it to, and why not.
func (d definition) takes(t *testing.T, spec map[string]any) (bool, string) {
	object := map[string]any{
		"apiVersion": "heliostat.dev/v1alpha1", "kind": "ResourceRequest", "metadata": map[string]any{"name": "a", "namespace": "ml"}, "spec": spec,
	}
	if unknown := pruning.PruneWithOptions(object, d.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}); len(unknown) > 0 {
		return false, "unknown " + strings.Join(unknown, ", ")
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, d.structural)
	defaulting.Default(object, d.structural)
	if faults := validation.ValidateCustomResource(nil, object, d.values); len(faults) > 0 {
		return false, faults.ToAggregate().Error()
	}
	faults, _ := d.rules.Validate(t.Context(), nil, d.structural, object, nil, celconfig.RuntimeCELCostBudget)
	if len(faults) > 0 {
		return false, faults.ToAggregate().Error()
	}
	return true, ""
}

// store takes every request.
type store struct{ api.OwnedRequests }

func (store) All(string) ([]nodepool.OwnedRequest, error) { return nil, nil }

func (store) Put(_ context.Context, wanted nodepool.OwnedRequest, may func(*nodepool.OwnedRequest) error) (nodepool.OwnedRequest, bool, error) {
	return wanted, true, may(nil)
}

type fleet struct{}

func (fleet) Views() []api.View                              { return nil }
func (fleet) View(nodepool.ClusterKey) (v api.View, is bool) { return v, false }

func rest(t *testing.T) http.Handler {
	t.Helper()
	handler, err := api.NewHandler(api.Config{Fleet: fleet{}, Requests: struct{ api.Requests }{}, Owned: store{}})
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

func put(handler http.Handler, body string) (bool, string) {
	call := httptest.NewRequest(http.MethodPut, "/v1/namespaces/ml/rayclusters/llm/request_resources/a", strings.NewReader(body))
	call.Host = "127.0.0.1:8090"
	call.Header.Set("Content-Type", "application/json")
	answer := httptest.NewRecorder()
	handler.ServeHTTP(answer, call)
	return answer.Code < 300, answer.Body.String()
}

// bundle is a body with one bundle of these fields.
func bundle(fields string) string { return `{"holdUntilDeleted": true, "bundles": [{` + fields + `}]}` }

func selector(label, expression string) string {
	text, _ := json.Marshal([]map[string]string{{label: expression}})
	return bundle(`"resources": {"GPU": 1}, "labelSelectors": ` + string(text))
}

func resource(name, amount string) string {
	text, _ := json.Marshal(name)
	return bundle(`"resources": {"CPU": 1, ` + string(text) + `: ` + amount + `}`)
}

// many are n members of an object with different names.
func many(n int, value string) string {
	names := make([]string, n)
	for i := range names {
		names[i] = `"n` + strings.Repeat("x", i) + `": ` + value
	}
	return "{" + strings.Join(names, ", ") + "}"
}

// kinds is a body with n bundles.
func kinds(n int) string {
	return `{"holdUntilDeleted": true, "bundles": [` + strings.Repeat(`{"resources": {"GPU": 1}}, `, n-1) + `{"resources": {"GPU": 1}}]}`
}

// text are resources whose names have n characters together, each of them two bytes.
func text(n int) string {
	resources := map[string]int{}
	for k := range 8 {
		resources[strings.Repeat("é", (n+k)/8-1)+strconv.Itoa(k)] = 1
	}
	encoded, _ := json.Marshal(resources)
	return string(encoded)
}

// Four differences are intended: REST leaves it to the API server to say what is too much, REST accepts 2.0 as a whole
// number, the API server drops a null like a missing field, and a memory that no card has, such as -1Gi or 1Pi, is
// reported as unreadable if kubectl wrote it.
func TestRESTAndTheDefinitionTakeTheSame(t *testing.T) {
	const gpu = `"bundles": [{"resources": {"GPU": 1}}]`
	d, handler := readDefinition(t), rest(t)
	encoded, err := json.Marshal(map[string]any{"holdUntilDeleted": true, "bundles": rig.LargestBundles(1)})
	if err != nil {
		t.Fatal(err)
	}
	largest := string(encoded)
	for body, want := range map[string]bool{
		`{"leaseSeconds": 60, ` + gpu + `}`:                            true,
		`{"leaseSeconds": 60, "holdUntilDeleted": false, ` + gpu + `}`: true,
		`{"leaseSeconds": 60, "holdUntilDeleted": true, ` + gpu + `}`:  false,
		`{` + gpu + `}`:                                                    false,
		`{"leaseSeconds": 0, ` + gpu + `}`:                                 false,
		`{"leaseSeconds": 31536000, ` + gpu + `}`:                          true,
		`{"leaseSeconds": 31536001, ` + gpu + `}`:                          false,
		`{"leaseSeconds": 1.5, ` + gpu + `}`:                               false,
		`{"holdUntilDeleted": "true", ` + gpu + `}`:                        false,
		`{"holdUntilDeleted": true, "allOrNothing": 1, ` + gpu + `}`:       false,
		`{"holdUntilDeleted": true, "color": 1, ` + gpu + `}`:              false,
		`{"holdUntilDeleted": true, "bundles": []}`:                        false,
		`{"holdUntilDeleted": true}`:                                       false,
		`{"holdUntilDeleted": true, "priority": 2147483647, ` + gpu + `}`:  true,
		`{"holdUntilDeleted": true, "priority": 2147483648, ` + gpu + `}`:  false,
		`{"holdUntilDeleted": true, "priority": -2147483649, ` + gpu + `}`: false,
		`{"holdUntilDeleted": true, "priority": "1", ` + gpu + `}`:         false,
		bundle(``):                        false,
		bundle(`"resources": {}`):         false,
		bundle(`"resources": {"GPU": 0}`): false,
		bundle(`"resources": {"GPU": 0}, "slice": {"isolation": "any"}`):         true,
		bundle(`"resources": {"GPU": 1}, "count": 0`):                            false,
		bundle(`"resources": {"GPU": 1}, "count": 10000`):                        true,
		bundle(`"resources": {"GPU": 1}, "count": 10001`):                        false,
		resource("GPU", "-1"):                                                    false,
		resource("GPU", `"1"`):                                                   false,
		resource("GPU", "0"):                                                     true,
		resource("GPU", "-0"):                                                    true,
		resource("GPU", "0.0001"):                                                true,
		resource("GPU", "1e-4"):                                                  true,
		resource("GPU", "0.00009"):                                               false,
		resource("GPU", "1e-5"):                                                  false,
		resource("GPU", "1e-300"):                                                false,
		resource("memory", "109951162777600"):                                    true,
		resource("memory", "109951162777601"):                                    false,
		resource("memory", "900000000000000"):                                    false,
		resource("", "1"):                                                        false,
		resource(" GPU", "1"):                                                    false,
		resource("GPU ", "1"):                                                    false,
		resource("a GPU", "1"):                                                   true,
		resource("a\nGPU", "1"):                                                  false,
		resource("GPU\u0000", "1"):                                               false,
		resource("GPU\u200b", "1"):                                               false,
		resource("Gerät", "1"):                                                   true,
		resource("日本", "1"):                                                      true,
		resource(strings.Repeat("ä", 256), "1"):                                  true,
		resource(strings.Repeat("a", 257), "1"):                                  false,
		bundle(`"resources": ` + many(8, "1")):                                   true,
		bundle(`"resources": ` + many(9, "1")):                                   false,
		selector("zone", "us-1"):                                                 true,
		selector("zone", ""):                                                     true,
		selector("zone", "  "):                                                   true,
		selector("zone", "!us-1"):                                                true,
		selector("zone", "! in( a , b )"):                                        true,
		selector("zone", "!in(a,b) "):                                            true,
		selector("zone", "!"):                                                    false,
		selector("zone", "!!a"):                                                  false,
		selector("zone", "in()"):                                                 false,
		selector("zone", "in(a,)"):                                               false,
		selector("zone", "in(a"):                                                 false,
		selector("zone", "in (a)"):                                               false,
		selector("zone", "a b"):                                                  false,
		selector("zone", "-a"):                                                   false,
		selector("zone", "\ta"):                                                  false,
		selector("zone", "a\n"):                                                  false,
		selector("zone", "in(a,\u00a0b)"):                                        false,
		selector("zone", strings.Repeat("a", 63)):                                true,
		selector("zone", strings.Repeat("a", 64)):                                false,
		selector("zone", "in("+strings.Repeat("a,", 39)+"a)"):                    true,
		selector("zone", "in("+strings.Repeat("a,", 40)+"a)"):                    false,
		selector("zone", "in("+strings.Repeat(" ", 1009)+"a,bc)"):                true,
		selector("zone", "in("+strings.Repeat(" ", 1010)+"a,bc)"):                false,
		selector("", "a"):                                                        false,
		selector("zone\u0007", "a"):                                              false,
		selector(strings.Repeat("z", 257), "a"):                                  false,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": []`):                  true,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [{}]`):                true,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [{"zone": "a"}, {}]`): true,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [{"zone": 1}]`):       false,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [` + strings.Repeat("{}, ", 3) + `{}]`): true,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [` + strings.Repeat("{}, ", 4) + `{}]`): false,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [` + many(16, `"a"`) + `]`):             true,
		bundle(`"resources": {"GPU": 1}, "labelSelectors": [` + many(17, `"a"`) + `]`):             false,
		kinds(10): true,
		kinds(11): false,
		bundle(`"resources": ` + text(1015) + `, "labelSelectors": [{"zone": "us-1a"}]`): true,
		bundle(`"resources": ` + text(1016) + `, "labelSelectors": [{"zone": "us-1a"}]`): false,
		largest:                                         true,
		bundle(`"slice": {}`):                           false,
		bundle(`"slice": {"memory": "10Gi"}`):           true,
		bundle(`"slice": {"memory": 1073741824}`):       true,
		bundle(`"slice": {"memory": "10GB"}`):           false,
		bundle(`"slice": {"computeFraction": 1}`):       true,
		bundle(`"slice": {"computeFraction": 1.01}`):    false,
		bundle(`"slice": {"computeFraction": 0}`):       false,
		bundle(`"slice": {"computeFraction": 0.0001}`):  true,
		bundle(`"slice": {"computeFraction": 0.00009}`): false,
		bundle(`"slice": {"isolation": ""}`):            false,
		bundle(`"slice": {"isolation": "none"}`):        false,
		bundle(`"slice": {"cores": 1}`):                 false,
	} {
		shown := body[:min(len(body), 150)]
		takes, why := put(handler, body)
		if strings.Contains(why, "you need the verb patch") {
			takes = true // the right is asked for once the body is read
		}
		var spec map[string]any
		if err := kubejson.Unmarshal([]byte(body), &spec); err != nil {
			t.Fatal(err)
		}
		spec["rayCluster"], spec["owner"] = llm.Name, "ann"
		defined, words := d.takes(t, spec)
		if defined != want {
			t.Errorf("the definition takes it: %v, want %v: %s: %.300s", defined, want, shown, words)
		}
		// What is only too much is refused by the API server, in the words of the definition.
		if tooMuch := !defined && strings.Contains(words, "at most"); takes != want && !(takes && tooMuch) {
			t.Errorf("REST takes it: %v, want %v: %s: %.200s", takes, want, shown, why)
		}
	}
}
