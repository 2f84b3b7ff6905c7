package api

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheExamplesOfTheDocumentationWork(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/rest.md")
	if err != nil {
		t.Fatal(err)
	}
	since := regexp.MustCompile(`"since":"[^"]+"`)
	examples := regexp.MustCompile("(?s)request_resources -H [^\n]* -d '([^']*)'\n```\n```json\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(examples) != 2 {
		t.Fatalf("found %d examples, want 2", len(examples))
	}
	for _, e := range examples {
		answer := newFixture(t).call(http.MethodPost, llmPath+"/request_resources", e[1])
		got := since.ReplaceAllString(strings.TrimSpace(answer.Body.String()), `"since":""`)
		if diff := cmp.Diff(since.ReplaceAllString(strings.TrimSpace(e[2]), `"since":""`), got); answer.Code != http.StatusOK || diff != "" {
			t.Errorf("%s\nstatus %d (-page +answer):\n%s\n%s", e[1], answer.Code, diff, got)
		}
	}
}
