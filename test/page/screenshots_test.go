package page

import (
	"bytes"
	"cmp"
	"flag"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

var screenshots = flag.String("screenshots", "", "folder that gets the pictures of the documentation (default: one that is removed)")

func TestScreenshotsShowThePageOfTheDocumentation(t *testing.T) {
	server := newServer(t, newBusyFleet(), withLines, nil)
	folder := cmp.Or(*screenshots, t.TempDir())
	for name, shot := range map[string]struct {
		screen
		of string
	}{
		"page-light": {screen{width: 1280, height: 1480}, "ml/llm"}, "page-dark": {screen{width: 1280, height: 1480, dark: true}, "ml/llm"},
		"page-phone": {phone, "ml/llm"}, "page-nodes": {screen{width: 1280, height: 620}, "nodes"},
	} {
		s := shot.screen
		b := open(t, s, server.URL+"/#"+shot.of)
		b.shows(map[string]string{"ml/llm": "Decisions", "nodes": "2 nodes in 1 pool"}[shot.of])
		b.do(chromedp.Evaluate(`document.querySelectorAll('summary').forEach(summary => summary.click())`, nil))
		var picture []byte
		b.do(chromedp.CaptureScreenshot(&picture))
		config, err := png.DecodeConfig(bytes.NewReader(picture))
		if err != nil || int64(config.Width) != s.width || int64(config.Height) != s.height {
			t.Errorf("%s is %d × %d (%v), want %d × %d", name, config.Width, config.Height, err, s.width, s.height)
		}
		if err := os.WriteFile(filepath.Join(folder, name+".png"), picture, 0o644); err != nil {
			t.Fatal(err)
		}
		b.unharmed()
	}
}
