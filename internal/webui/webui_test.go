package webui

import (
	"bytes"
	"net/http"
	"net/http/httptest"
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
	page = bytes.ReplaceAll(page, []byte("http://www.w3.org/2000/svg"), nil) // a name, never fetched
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
