package page

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"heliostat.dev/heliostat/internal/api"
	"heliostat.dev/heliostat/test/devcluster/kit"
)

// axe checks the accessibility of a page for keyboards and screen readers: names, roles, landmarks, headings, contrast
// and sizes.
var axe = kit.Tool{Name: "axe-playwright-python", Version: "0.1.8", Lock: "axe.lock", MinPython: 10, MaxPython: 14}

// axeRun is the expression to evaluate after the script has loaded. Rules with other tags are experimental or best
// practices.
const axeRun = `axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}).then(result =>
	result.violations.flatMap(rule => rule.nodes.map(node => rule.id + ': ' + rule.help + ': ' + node.html.slice(0, 120))))`

var axeScript = sync.OnceValues(func() (string, error) {
	bin, err := kit.EnsureTool(context.Background(), axe)
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(filepath.Join(bin, "../lib/python3.*/site-packages/axe_playwright_python/axe.min.js"))
	if err != nil || len(found) != 1 {
		return "", fmt.Errorf("%d scripts of axe below %s: %v", len(found), bin, err)
	}
	text, err := os.ReadFile(found[0])
	return string(text), err
})

// accessible fails the test for each accessibility problem in the current state of the page.
func (b *tab) accessible() {
	b.t.Helper()
	script, err := axeScript()
	if err != nil {
		b.t.Fatal(err)
	}
	if !ask[bool](b, `'axe' in window`) {
		b.do(chromedp.Evaluate(script+"\n;null", nil))
	}
	for _, fault := range append(ask[[]string](b, contrast), ask[[]string](b, axeRun)...) {
		b.t.Error(fault)
	}
	if ask[bool](b, `document.documentElement.scrollWidth > innerWidth`) {
		b.t.Error("the page is wider than the screen")
	}
}

func TestEveryStateOfThePageIsForEverybody(t *testing.T) {
	everything := func(c *api.Config) {
		withNodes(c)
		c.History, c.Owned = past{}, owned{}
	}
	troubled := busy(time.Now())
	troubled.Err, troubled.Kube.Freeze, troubled.Paused = "reading Ray's state: deadline exceeded", true, "Ray's account is 12 s old"
	full, broken := newBusyFleet(), newBusyFleet()
	for number := range 12 { // enough clusters for the filter
		full.set(quiet(number))
	}
	broken.set(troubled)
	for name, state := range map[string]struct {
		fleet       *fleet
		hash, shows string
		change      func(*api.Config)
		wrap        func(http.Handler) http.Handler
	}{
		"busy":     {fleet: full, hash: "#ml/llm", shows: "remembered for long", change: func(c *api.Config) { everything(c); withCosts(c) }},
		"at rest":  {fleet: full, hash: "#team-01/cluster-0001", shows: "There is no demand.", change: everything},
		"nodes":    {fleet: full, hash: "#nodes", shows: "2 nodes in 1 pool", change: everything},
		"costs":    {fleet: full, hash: "#costs", shows: "autoscaler explain ml/llm --group a100", change: func(c *api.Config) { everything(c); withCosts(c) }},
		"errors":   {fleet: broken, hash: "#ml/llm", shows: "Frozen: Heliostat writes nothing", change: everything},
		"nobody":   {fleet: broken, hash: "#ml/nobody", shows: "there is no RayCluster", change: everything},
		"empty":    {fleet: &fleet{}, shows: "There are no RayClusters."},
		"stranger": {fleet: full, shows: "kubectl create token", wrap: withToken("a-right-token")},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, desktop, newServer(t, state.fleet, state.change, state.wrap).URL+"/"+state.hash)
			for _, s := range []screen{desktop, phone, {width: 800, height: 900}, {width: 1000, height: 900}, {width: 1280, height: 900, dark: true}, {width: 390, height: 844, dark: true}} {
				b.resize(s)
				b.shows(state.shows)
				b.do(chromedp.Evaluate(`document.querySelectorAll('details:not([open]) summary').forEach(summary => summary.click())`, nil))
				b.accessible()
				if t.Failed() {
					t.Fatalf("at %d pixels, dark %t", s.width, s.dark)
				}
			}
			b.unharmed()
		})
	}
}
