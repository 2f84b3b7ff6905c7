package webui

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

func get(t *testing.T, header http.Header) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequest(http.MethodGet, "/", nil)
	request.Header = header
	recorder := httptest.NewRecorder()
	Handler().ServeHTTP(recorder, request)
	return recorder
}

func TestThePageIsOneSmallDocument(t *testing.T) {
	answer := get(t, http.Header{})
	page := answer.Body.String()
	if answer.Code != http.StatusOK || answer.Header().Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("status %d, %s", answer.Code, answer.Header().Get("Content-Type"))
	}
	if len(page) > 100<<10 {
		t.Errorf("%d bytes, want at most 100 KiB", len(page))
	}
	for _, part := range [][]byte{style, script} {
		if !strings.Contains(page, string(part)) {
			t.Error("style or script is not in the page")
		}
	}
	if again := get(t, http.Header{"If-None-Match": {answer.Header().Get("ETag")}}); again.Code != http.StatusNotModified {
		t.Errorf("the same page again: %d, want 304", again.Code)
	}
}

func TestThePageLoadsNothingFromElsewhere(t *testing.T) {
	page := get(t, http.Header{}).Body.Bytes()
	page = bytes.ReplaceAll(page, []byte("http://www.w3.org/2000/svg"), nil) // an identifier, which no browser loads
	for _, pattern := range []string{`https?://`, `//[a-z]+\.`, `@import`, `url\(`, `<(img|iframe|object|embed|audio|video)\b`, `\bsrc=`} {
		if found := regexp.MustCompile(pattern).Find(page); found != nil {
			t.Errorf("the page contains %q", found)
		}
	}
}

func TestTheScriptMakesNoMarkupFromText(t *testing.T) {
	if found := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function`).Find(script); found != nil {
		t.Errorf("the script uses %s: names from the cluster could become markup", found)
	}
}

func TestThePolicyAllowsThePagesOwnScriptAndStyleOnly(t *testing.T) {
	answer := get(t, http.Header{})
	policy, page := answer.Header().Get("Content-Security-Policy"), answer.Body.String()
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || !strings.Contains(policy, "default-src 'none'") {
		t.Errorf("policy %q", policy)
	}
	for element, directive := range map[string]string{"script": "script-src", "style": "style-src"} {
		parts := regexp.MustCompile(`(?s)<`+element+`>(.*?)</`+element+`>`).FindAllStringSubmatch(page, -1)
		if len(parts) != 1 {
			t.Fatalf("%d elements %s, want 1", len(parts), element)
		}
		if want := directive + " '" + hash([]byte(parts[0][1])) + "'"; !strings.Contains(policy, want) {
			t.Errorf("policy %q lacks %s", policy, want)
		}
	}
	if regexp.MustCompile(`\s(style|on[a-z]+)="`).MatchString(page) {
		t.Error("an inline style or handler would be refused by the policy")
	}
}

// evaluate returns what an expression of the page's functions gives in Node.js, if that is installed. The tests in a
// browser (test/page) run everywhere.
func evaluate(t *testing.T, functions []string, expression string) string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("needs node")
	}
	source := ""
	for _, begin := range functions {
		source += string(regexp.MustCompile(`(?s)` + begin + `.*?\n}\n`).Find(script))
	}
	output, err := exec.Command(node, "-e", source+"console.log("+expression+")").CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v: %s", expression, err, output)
	}
	return strings.TrimSpace(string(output))
}

func TestABarShowsItsWorkersUnderAnyMaximum(t *testing.T) {
	for _, c := range []struct{ group, want string }{
		{`{current: 2, desired: 3, min: 0, max: 8}`, "8"},
		{`{current: 9, desired: 3, min: 0, max: 8}`, "9"},
		{`{current: 0, desired: 0, min: 0, max: 0}`, "1"},
		{`{current: 0, desired: 0, min: 0, max: 2147483647}`, "20"},
		{`{current: 3, desired: 30, min: 0, max: 2147483647}`, "120"},
		{`{current: 3, desired: 3, min: 500, max: 500}`, "500"},
	} {
		if got := evaluate(t, []string{"const shortest"}, "scaleOf("+c.group+")"); got != c.want {
			t.Errorf("scale of %s: %s, want %s", c.group, got, c.want)
		}
	}
}

func TestThePageShowsKnownNumbersOfGPUs(t *testing.T) {
	for _, c := range []struct{ numbers, want string }{
		{`{declared: null, derived: 2, reported: 3, ray: null}`, "num-gpus: declared – · derived 2 · reported 3 · Ray reports –"},
		{`{declared: 0, derived: 0, reported: null, ray: 0}`, "num-gpus: declared 0 · derived 0 · reported – · Ray reports 0"},
		{`{declared: null, derived: null, reported: null, ray: null}`, ""},
	} {
		if got := evaluate(t, []string{"function numGPUsText"}, "numGPUsText("+c.numbers+")"); got != c.want {
			t.Errorf("%s is shown as %q, want %q", c.numbers, got, c.want)
		}
	}
}

func TestThePageNamesTheShardOfARayCluster(t *testing.T) {
	for _, c := range []struct{ cluster, divided, want string }{
		{`{shard: "heliostat-7q2bz"}`, "true", "shard heliostat-7q2bz"},
		{`{shard: ""}`, "true", "no shard"},
		{`{}`, "true", "no shard"},
		{`{}`, "false", ""},
	} {
		if got := evaluate(t, []string{"const noShard"}, "shardText("+c.cluster+", "+c.divided+")"); got != c.want {
			t.Errorf("%s, divided %s, is shown as %q, want %q", c.cluster, c.divided, got, c.want)
		}
	}
	for words, want := range map[string]string{"heliostat-7q": "true", "ml/l": "true", "heliostat-x": "false"} {
		got := evaluate(t, []string{"function matches"}, `matches({namespace: "ml", name: "llm", shard: "heliostat-7q2bz"}, "`+words+`")`)
		if got != want {
			t.Errorf("the filter %q finds the RayCluster: %s, want %s", words, got, want)
		}
	}
}

func TestThePageAddsUpTheCausesOfARayCluster(t *testing.T) {
	got := evaluate(t, []string{"function costRows"}, `JSON.stringify(costRows({items: [
		{namespace: "ml", cluster: "a", cause: "used", gpuSeconds: 3600, cost: 1}, {namespace: "ml", cluster: "b", cause: "idle", gpuSeconds: 7200, cost: 4},
		{namespace: "ml", cluster: "b", cause: "used", gpuSeconds: 1800, cost: 1}]}))`)
	if want := `[["ml/b","2.5","5.00","4.00"],["ml/a","1.0","1.00","0.00"]]`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
